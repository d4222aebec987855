"""Runs in an engine's interpreter: what the release itself says of its arguments, and what it resolves them to."""
# ruff: noqa: B905, PLR0402, PLR0911, PTH123 - the interpreter may be Python 3.9, its packages are the engine's

import argparse
import dataclasses
import enum
import importlib
import inspect
import json
import os
import sys

# Until 0.11.0 compilation modes were numbers.
MODES = ("NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE")


def plain(value):
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, (str, int)) else value.name
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value):
        return {"object": type(value).__name__}
    return repr(value)


def field_defaults(cls):
    found = {}
    for field in dataclasses.fields(cls):
        default = field.default
        if default is dataclasses.MISSING:
            default = field.default_factory() if field.default_factory is not dataclasses.MISSING else "required"
        elif type(default).__name__ == "FieldInfo":
            default = default.get_default(call_default_factory=True)
        found[field.name] = plain(default)
    return found


def server_flags():
    for name in ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args"):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        break
    for name in ("vllm.utils.argparse_utils", "vllm.utils"):
        try:
            parser = importlib.import_module(name).FlexibleArgumentParser()
        except (ModuleNotFoundError, AttributeError):
            continue
        break
    try:  # `vllm serve` adds flags of its own to the server's
        from vllm.entrypoints.cli.serve import ServeSubcommand

        parsers = argparse.ArgumentParser().add_subparsers()
        made = ServeSubcommand().subparser_init(parsers)
        actions = dict(made._option_string_actions)
    except Exception as error:
        print("serve:", error)
        actions = {}
    actions.update(module.make_arg_parser(parser)._option_string_actions)
    return {spelling.lstrip("-"): action.dest for spelling, action in actions.items()}


def sampling_defaults():
    from vllm import SamplingParams

    defaults = {}
    fields = SamplingParams.__struct_fields__
    for name, default in zip(reversed(fields), reversed(SamplingParams.__struct_defaults__)):
        factory = getattr(default, "factory", None)
        defaults[name] = plain(factory() if factory is not None else default)
    return {name: value for name, value in defaults.items() if not name.startswith("_")}


def variables():
    import vllm.envs as envs

    found = {}
    for name, read in envs.environment_variables.items():
        try:
            found[name] = plain(read())
        except Exception as error:
            found[name] = repr(error)
    return found


def resolved(model, written, offline):
    from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
    from vllm.usage.usage_lib import UsageContext

    cls = EngineArgs if offline else AsyncEngineArgs
    known = {field.name for field in dataclasses.fields(cls)}
    arguments = cls(model=model, **{name: value for name, value in written.items() if name in known})
    context = UsageContext.LLM_CLASS if offline else UsageContext.OPENAI_API_SERVER
    config = arguments.create_engine_config(usage_context=context)
    cache, scheduler, parallel = config.cache_config, config.scheduler_config, config.parallel_config
    found = {
        "enable_prefix_caching": bool(cache.enable_prefix_caching),
        "kv_cache_dtype": cache.cache_dtype,
        "block_size": cache.block_size,
        "gpu_memory_utilization": cache.gpu_memory_utilization,
        "prefix_caching_hash_algo": cache.prefix_caching_hash_algo,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "max_num_seqs": scheduler.max_num_seqs,
        "enable_chunked_prefill": getattr(scheduler, "enable_chunked_prefill", None),
        "seed": config.model_config.seed,
        "dtype": str(config.model_config.dtype).replace("torch.", ""),
        "enforce_eager": config.model_config.enforce_eager,
        "max_model_len": config.model_config.max_model_len,
        "max_logprobs": config.model_config.max_logprobs,
        "generation_config": config.model_config.generation_config,
        "request_defaults": plain(config.model_config.get_diff_sampling_param()),
        "engine": engine(),
    }
    if hasattr(scheduler, "async_scheduling"):
        found["async_scheduling"] = scheduler.async_scheduling
    if hasattr(config.model_config, "logprobs_mode"):
        found["logprobs_mode"] = plain(config.model_config.logprobs_mode)
    mode = getattr(config.compilation_config, "mode", None)
    found["compilation_mode"] = MODES[config.compilation_config.level] if mode is None else mode.name
    if hasattr(config.compilation_config, "cudagraph_mode"):
        found["cudagraph_mode"] = config.compilation_config.cudagraph_mode.name
    if hasattr(config, "optimization_level"):
        found["optimization_level"] = int(config.optimization_level)
    if hasattr(config, "use_v2_model_runner"):
        found["model_runner"] = "V2" if config.use_v2_model_runner else "V1"
    if parallel.distributed_executor_backend is not None:
        found["distributed_executor_backend"] = plain(parallel.distributed_executor_backend)
    return found


def engine():
    import vllm.envs as envs

    return "V1" if getattr(envs, "VLLM_USE_V1", True) else "V0"


def main(job_path, out_path):
    with open(job_path) as file:
        job = json.load(file)
    set_here = [name for name in os.environ if name.startswith("VLLM_")]
    from vllm.engine.arg_utils import AsyncEngineArgs

    report = {
        "python": sys.version,
        "set_here": set_here,
        "fields": field_defaults(AsyncEngineArgs),
        "sampling": sampling_defaults(),
        "variables": variables(),
        "flags": server_flags(),
        "signature": str(inspect.signature(AsyncEngineArgs)),
    }
    report["resolved"] = {
        name: resolved(job["model"], written, offline) for name, (written, offline) in job["cases"].items()
    }
    with open(out_path, "w") as file:
        json.dump(report, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
