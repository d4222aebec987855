"""Runs in an engine's interpreter: what a release's CUDA build makes of engine arguments, on devices it is told of.

Everything that decides is the release's own: `EngineArgs.create_engine_config`, the platform's check of the config, the
`Attention` layer that chooses its backend, the block size that follows from it, and the resolution of CUDA graphs that
a worker does once it knows the backend. What is answered in place of a GPU stands in device_answers.py. Restated
here, for want of a function that runs without a device: 0.8.5's use of CUDA graphs, and that a model which vLLM
compiles can be captured in pieces.

    job: tree, the folder with the wheel's vllm/; generate, the worker script that assembles engine arguments; model;
         groups, [{device, variables, cases: [{engine_args, optional_engine_args, fp32_head, requires, context}]}]
    out: for each group, for each of its cases, the resolved values, or {"refused": words}

Variables are read when vLLM is imported, and vLLM remembers devices: each group is a process, forked once the packages
below vLLM are imported, and each case is forked from its group. Python 3.9 syntax, standard library and engine only.
"""

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
import types
from pathlib import Path

# Large packages that every vLLM imports and that ask nothing of a device: imported once, before the groups.
BELOW_VLLM = (
    "torch._dynamo.device_interface",
    "transformers.models.auto.modeling_auto",
    "openai.types.responses",
    "fastapi",
    "gguf",
    "networkx",
    "aiohttp",
)
LAYER = "model.layers.0.self_attn.attn"
MARK_OF_V1 = "_VLLM_V1"
# Until 0.11.0 compilation modes were numbers.
MODES = ("NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE")


class Refused(Exception):
    """The release will not run this."""


class Channel:
    """As much of a worker's channel as the assembly of engine arguments uses."""

    Unsupported = Refused


def neighbour(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start_vllm(job, group):
    """Import the CUDA build on the group's device, with the group's variables."""
    os.environ.update(group["variables"])
    neighbour(Path(__file__).with_name("device_answers.py")).start_vllm(group["device"], job["tree"])


def resolve_case(job, case):
    from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
    from vllm.usage.usage_lib import UsageContext

    generate = neighbour(job["generate"])
    kind = EngineArgs if case["context"] == "LLM_CLASS" else AsyncEngineArgs
    generate.check_requirements(case, kind, Channel)
    known = generate.known_arguments(kind)
    arguments = {name: value for name, value in case["optional_engine_args"].items() if name in known}
    arguments.update(case["engine_args"])
    generate.plan_fp32_head(case, arguments)
    config = kind(model=job["model"], **arguments).create_engine_config(usage_context=UsageContext[case["context"]])
    return describe(config)


def describe(config):
    """The values that rlaudit predicts, as they are once a worker has its attention layers."""
    import torch
    import vllm.config
    from vllm.platforms import current_platform

    engine = "V1" if ".v1." in config.parallel_config.worker_cls else "V0"
    check_batch_invariance(config)
    torch.set_default_dtype(config.model_config.dtype)
    with vllm.config.set_current_vllm_config(config):
        layer = attention_layer(config)
        if hasattr(type(current_platform), "update_block_size_for_backend"):
            current_platform.update_block_size_for_backend(config)
        graphs = cudagraph_mode(config, engine, layer)
    model, cache, scheduler, parallel = (
        config.model_config,
        config.cache_config,
        config.scheduler_config,
        config.parallel_config,
    )
    found = {
        "engine": engine,
        "model_runner": model_runner(config, engine),
        "attention_backend": backend_name(layer),
        "compilation_mode": compilation_mode(config),
        "cudagraph_mode": graphs,
        "enable_prefix_caching": bool(cache.enable_prefix_caching),
        "enable_chunked_prefill": scheduler.enable_chunked_prefill,
        "enforce_eager": model.enforce_eager,
        "max_model_len": model.max_model_len,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "max_num_seqs": scheduler.max_num_seqs,
        "block_size": cache.block_size,
        "kv_cache_dtype": cache.cache_dtype,
        "dtype": str(model.dtype).replace("torch.", ""),
        "seed": model.seed,
    }
    if hasattr(scheduler, "async_scheduling"):
        found["async_scheduling"] = scheduler.async_scheduling
    if hasattr(model, "disable_cascade_attn") and engine == "V1":
        found["disable_cascade_attn"] = model.disable_cascade_attn
    if hasattr(model, "logprobs_mode"):
        found["logprobs_mode"] = getattr(model.logprobs_mode, "value", model.logprobs_mode)
    if hasattr(config, "optimization_level"):
        found["optimization_level"] = int(config.optimization_level)
    if parallel.distributed_executor_backend is not None:
        found["distributed_executor_backend"] = parallel.distributed_executor_backend
    return found


def check_batch_invariance(config):
    """What a worker does first: releases that want the attention backend named raise where it is not."""
    if os.environ.get("VLLM_BATCH_INVARIANT") != "1":
        return
    try:
        from vllm.model_executor.layers.batch_invariant import override_envs_for_invariance as check
    except ImportError:
        return
    check(*[config.attention_config.backend][: len(inspect.signature(check).parameters)])


def attention_layer(config):
    """One attention layer of the model, as its class builds them: building it is what chooses the backend."""
    try:
        from vllm.attention.layer import Attention
    except ImportError:
        from vllm.model_executor.layers.attention import Attention

    model, parallel = config.model_config, config.parallel_config
    size = model.get_head_size()
    return Attention(
        model.get_num_attention_heads(parallel),
        size,
        size**-0.5,
        num_kv_heads=model.get_num_kv_heads(parallel),
        cache_config=config.cache_config,
        prefix=LAYER,
    )


def backend_name(layer):
    """The backend's name, without the mark by which releases with two engines told V1's from V0's."""
    name = layer.attn_backend.get_name() if hasattr(layer, "attn_backend") else layer.backend.name
    return name[: -len(MARK_OF_V1)] if name.endswith(MARK_OF_V1) else name


def model_runner(config, engine):
    if engine == "V0":
        return "V0"
    import vllm.envs

    second = getattr(config, "use_v2_model_runner", getattr(vllm.envs, "VLLM_USE_V2_MODEL_RUNNER", False))
    return "V2" if second else "V1"


def compilation_mode(config):
    compilation = config.compilation_config
    mode = getattr(compilation, "mode", None)
    return MODES[compilation.level] if mode is None else mode.name


def cudagraph_mode(config, engine, layer):
    compilation = config.compilation_config
    if engine == "V0":  # vllm/worker/worker.py, Worker.initialize_cache: captures where not eager
        return "NONE" if config.model_config.enforce_eager else "V0 decode"
    if not hasattr(compilation, "cudagraph_mode"):  # GPUModelRunner.__init__ and the piecewise backend of 0.8.5
        captures = compilation_mode(config) == "VLLM_COMPILE" and compilation.use_cudagraph
        return "PIECEWISE" if captures and not config.model_config.enforce_eager else "NONE"
    builder, spec = layer.attn_backend.get_builder_cls(), layer.get_kv_cache_spec(config)
    if hasattr(compilation, "resolve_cudagraph_mode_and_sizes"):
        import vllm.envs

        answers = {
            "min_cg_support": builder.get_cudagraph_support(config, spec),
            "min_cg_attn_backend": layer.attn_backend.__name__,
            "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
            "use_v2_model_runner": model_runner(config, engine) == "V2",
            # A model that vLLM compiles has a compiled submodule.
            "piecewise_capture_available": compilation_mode(config) == "VLLM_COMPILE"
            or getattr(vllm.envs, "VLLM_USE_BREAKABLE_CUDAGRAPH", False),
        }
        resolve = compilation.resolve_cudagraph_mode_and_sizes
        taken = inspect.signature(resolve).parameters
        return resolve(**{name: value for name, value in answers.items() if name in taken}).name
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    runner = types.SimpleNamespace(
        vllm_config=config,
        compilation_config=compilation,
        parallel_config=config.parallel_config,
        speculative_config=None,
        uniform_decode_query_len=1,
        kv_cache_config=None,
        cudagraph_dispatcher=types.SimpleNamespace(initialize_cudagraph_keys=lambda *_: None),
    )
    group = types.SimpleNamespace(kv_cache_spec=spec)
    GPUModelRunner._check_and_update_cudagraph_mode(runner, [{layer.attn_backend}], [group])
    return compilation.cudagraph_mode.name


def in_child(work):
    """The process id of a fork that does `work`, and where what it returns can be read as JSON."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    os.close(read)
    status = 1
    try:
        with os.fdopen(write, "w") as pipe:
            json.dump(work(), pipe)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def answer(child, read):
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit("a child failed, see above")
    return json.loads(text)


def attempt(job, case):
    """What a case resolves to, and the modules of vLLM that it took."""
    print("case", case, file=sys.stderr, flush=True)
    try:
        values = resolve_case(job, case)
    except Exception as error:
        traceback.print_exc()
        values = {"refused": f"{type(error).__name__}: {error}"}
    return {"values": values, "modules": [name for name in sys.modules if name.startswith("vllm.")]}


def run_group(job, group):
    start_vllm(job, group)
    found = []
    for case in group["cases"]:
        done = answer(*in_child(lambda case=case: attempt(job, case)))
        found.append(done["values"])
        if len(found) == 1:  # what the first case imported, most others import as well
            for name in done["modules"]:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
    return found


def main(job_path, out_path):
    job = json.loads(Path(job_path).read_text())
    for name in BELOW_VLLM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    found, width = [], os.cpu_count() or 1
    for start in range(0, len(job["groups"]), width):
        batch = [in_child(lambda group=group: run_group(job, group)) for group in job["groups"][start : start + width]]
        found += [answer(*started) for started in batch]
    Path(out_path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
