"""Generates rollouts with vLLM and reports what the engine resolved. A worker script: see worker.py.

job
  model, revision, trust_remote_code
  engine_args           passed to `LLM(...)` unchanged; the engine reports one that does not exist
  engine                {"kind": "V0" or "V1", "because", "way_out"}, the engine that must load; None: either
  optional_engine_args  passed if the release has them
  requires              [{"factor", "engine_args": [...], "modules": [...]}]: what a factor needs of this release. A
                        release without the arguments, or without any of the modules, does not have that factor.
  fp32_head             compute logits in float32: natively if the release can, else by our worker extension
  sampling              keyword arguments of SamplingParams; `top_logprobs` more logprobs per position
  prompt_token_ids      one list per prompt
  requests              [{"prompt", "sample", "round", "seed"}] ; rounds are generated one after the other. "sample" is
                        the first of the request's completions, of which `sampling` may ask n. "after": a request is
                        submitted after that many engine steps of its round; absent: 0
  reads                 {"name": ["model_config.dtype", ...]}: what to report of the loaded configuration besides
                        RESOLVED, each with its paths in different releases
  concurrency           "batch": a round is one call;  "alone": one request at a time
  recorded_tokens       what to report of other tokens (recorded_tokens.py); absent: nothing

samples.jsonl           one line per completion: token ids, their logprobs, top logprobs, cached tokens, finish reason
result                  resolved, loaded (loaded_engine.py), batch_probe (batch_probe.py), prompt_probe
                        (prompt_probe.py), recorded_logprobs (recorded_tokens.py), generated_tokens,
                        generate_seconds (without what looks at the engine), fp32_head

Every vLLM from 0.8.5 on, V0 and V1: releases are distinguished by feature, never by parsing a version.
"""

import contextlib
import dataclasses
import operator
import time
import traceback

EXTENSION = "rlaudit_fp32_head.Fp32Head"
# vLLM 0.8.5 to 0.10.2 choose V0 or V1 in this method of EngineArgs, and raise from it if a required V1 is impossible.
CHOOSES_ENGINE = "_is_v1_supported_oracle"
# What is reported of every engine, by its paths in different releases; a factor that needs more has Factor.reads.
RESOLVED = {
    "dtype": ("model_config.dtype",),
    "head_dtype": ("model_config.head_dtype",),
    "logprobs_mode": ("model_config.logprobs_mode",),
    "max_model_len": ("model_config.max_model_len",),
    "seed": ("model_config.seed",),
    "enforce_eager": ("model_config.enforce_eager",),
    "quantization": ("model_config.quantization",),
    "generation_config": ("model_config.generation_config",),
    "enable_prefix_caching": ("cache_config.enable_prefix_caching",),
    "block_size": ("cache_config.block_size",),
    "cache_dtype": ("cache_config.cache_dtype",),
    "async_scheduling": ("scheduler_config.async_scheduling",),
    "enable_chunked_prefill": ("scheduler_config.enable_chunked_prefill", "scheduler_config.chunked_prefill_enabled"),
    "max_num_batched_tokens": ("scheduler_config.max_num_batched_tokens",),
    "max_num_seqs": ("scheduler_config.max_num_seqs",),
    "tensor_parallel_size": ("parallel_config.tensor_parallel_size",),
    "attention_backend": ("attention_config.backend",),
    "cudagraph_mode": ("compilation_config.cudagraph_mode",),
    "compilation_mode": ("compilation_config.mode", "compilation_config.level"),
    "compile_backend": ("compilation_config.backend",),
    "use_inductor": ("compilation_config.use_inductor",),
    "use_cudagraph": ("compilation_config.use_cudagraph",),
    "device": ("device_config.device_type",),
}


def run(job, channel):
    """Load the engine, generate every round, and describe both."""
    channel.phase("launch")
    if "logit_bias" in job["sampling"]:
        # The job is JSON, whose keys are texts.
        job["sampling"]["logit_bias"] = {int(token): added for token, added in job["sampling"]["logit_bias"].items()}
    from vllm import LLM, SamplingParams
    from vllm.engine.arg_utils import EngineArgs

    check_requirements(job, EngineArgs, channel)
    engine_args = {
        name: value for name, value in job["optional_engine_args"].items() if name in known_arguments(EngineArgs)
    }
    engine_args.update(job["engine_args"])
    loaded_engine = channel.neighbour("loaded_engine")
    loaded_engine.offer_extensions()
    head = plan_fp32_head(job, engine_args)
    unseen = None if head == "extension" else loaded_engine.attach(engine_args, known_arguments(EngineArgs))
    if job.get("trust_remote_code"):
        engine_args["trust_remote_code"] = True
    if job.get("revision"):
        engine_args["revision"] = job["revision"]

    channel.phase("load")
    with refusal_of_engine(job, channel):
        llm = LLM(model=job["model"], **engine_args)
    if head == "extension":
        refusals = [reason for reason in llm.collective_rpc("rlaudit_install_fp32_head") if reason]
        if refusals:
            raise channel.Unsupported("fp32 head: " + refusals[0])
    resolved = resolve(llm, job["reads"])
    unseen = unseen or loaded_engine.watch(llm.collective_rpc)
    channel.emit("loaded", resolved=resolved, loaded=loaded_engine.loaded(llm.collective_rpc, unseen))
    check_engine(job, resolved["engine"], channel)

    with channel.neighbour("engine_processes").needed():
        return sample(job, llm, SamplingParams, channel, head, resolved, unseen)


def sample(job, llm, sampling_params_class, channel, head, resolved, unseen):
    """Generate every round, and return what was generated and how. unseen: why workers are not asked, or None."""
    loaded_engine = channel.neighbour("loaded_engine")
    channel.phase("generate")
    started = time.time()
    rows = generate(job, llm, sampling_params_class, channel)
    generate_seconds = time.time() - started
    channel.write_lines("samples.jsonl", rows)
    loaded = loaded_engine.loaded(llm.collective_rpc, unseen)
    recorded = job.get("recorded_tokens")
    recorded_logprobs = recorded and channel.neighbour("recorded_tokens").logprobs_of(
        recorded, job, llm, sampling_params_class
    )
    batch_probe = channel.neighbour("batch_probe").probe(resolved["device"], job, llm, sampling_params_class, row)
    calls = llm.collective_rpc("rlaudit_fp32_head_calls")[0] if head == "extension" else None
    prompt_probe = channel.neighbour("prompt_probe").probe(rows, job, llm, sampling_params_class)
    return {
        "resolved": resolved,
        "loaded": loaded,
        "batch_probe": batch_probe,
        "prompt_probe": prompt_probe,
        "recorded_logprobs": recorded_logprobs,
        "generated_tokens": sum(len(row["token_ids"]) for row in rows),
        "generate_seconds": generate_seconds,
        "fp32_head": {"by": head, "calls": calls} if head else None,
    }


def check_requirements(job, engine_args_class, channel):
    """Raise Unsupported for a factor that this release does not have."""
    from importlib.util import find_spec

    arguments = known_arguments(engine_args_class)
    for need in job.get("requires", []):
        missing = [name for name in need.get("engine_args", []) if name not in arguments]
        if missing:
            raise channel.Unsupported("%s: this vLLM has no engine argument %s" % (need["factor"], ", ".join(missing)))
        modules = need.get("modules", [])
        if modules and not any(_exists(find_spec, module) for module in modules):
            raise channel.Unsupported("%s: this vLLM has none of %s" % (need["factor"], ", ".join(modules)))


def known_arguments(engine_args_class):
    """Return the names of the engine arguments of this release."""
    return {field.name for field in dataclasses.fields(engine_args_class)}


def _exists(find_spec, module):
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def plan_fp32_head(job, engine_args):
    """Return 'native', 'extension' or None.

    It is native from 0.26.0 on, where LogitsProcessor applies the head itself (vLLM #48390). Older releases also have
    the `head_dtype` override, but generation ignores it.
    """
    if not job.get("fp32_head"):
        return None
    from vllm.model_executor.layers.logits_processor import LogitsProcessor

    if hasattr(LogitsProcessor, "_apply_head"):
        engine_args["hf_overrides"] = {**engine_args.get("hf_overrides", {}), "head_dtype": "float32"}
        return "native"
    engine_args["worker_extension_cls"] = EXTENSION
    return "extension"


def generate(job, llm, sampling_params_class, channel):
    """Return one row per completion, in the order of the requests."""
    rows, done = [], 0
    rounds = sorted({request["round"] for request in job["requests"]})
    for round_index in rounds:
        requests = [request for request in job["requests"] if request["round"] == round_index]
        batches = [[request] for request in requests] if job["concurrency"] == "alone" else [requests]
        for batch in batches:
            prompts = [{"prompt_token_ids": job["prompt_token_ids"][request["prompt"]]} for request in batch]
            parameters = [
                sampling_params_class(
                    logprobs=job["top_logprobs"],
                    seed=request["seed"],
                    detokenize=False,
                    **job["sampling"],
                )
                for request in batch
            ]
            arrivals = [request.get("after", 0) for request in batch]
            if any(arrivals) and job["concurrency"] == "batch":
                outputs = as_they_come(llm.llm_engine, "%d-" % round_index, prompts, parameters, arrivals)
            else:
                outputs = llm.generate(prompts, parameters, use_tqdm=False)
            rows.extend(
                row(request, output, job["top_logprobs"], number)
                for request, output in zip(batch, outputs)
                for number in range(len(output.outputs))
            )
            done += len(batch)
            channel.emit("progress", done=done, total=len(job["requests"]))
    return rows


def as_they_come(engine, name, prompts, parameters, arrivals):
    """Generate requests that arrive while others run. arrivals: after how many steps each arrives, ascending.

    An idle engine makes no step, so the next request arrives at once.
    """
    finished, steps, submitted = {}, 0, 0
    while len(finished) < len(prompts):
        if not engine.has_unfinished_requests():
            if submitted == len(prompts):
                raise RuntimeError("the engine has ended %d requests without an output" % (submitted - len(finished)))
            steps = max(steps, arrivals[submitted])
        while submitted < len(prompts) and arrivals[submitted] <= steps:
            engine.add_request(name + str(submitted), prompts[submitted], parameters[submitted])
            submitted += 1
        finished.update((output.request_id, output) for output in engine.step() if output.finished)
        steps += 1
    return [finished[name + str(number)] for number in range(len(prompts))]


def row(request, output, top_logprobs, number=0):
    """Return one completion of a request. Logprobs of -inf or NaN are kept for the audit to judge."""
    completion = output.outputs[number]
    ids = list(completion.token_ids)
    top_ids, top_values = [], []
    for step in completion.logprobs:
        best = sorted(step.items(), key=lambda item: -item[1].logprob)[:top_logprobs]
        top_ids.append([token for token, _ in best])
        top_values.append([entry.logprob for _, entry in best])
    return {
        "prompt": request["prompt"],
        "sample": request["sample"] + number,
        "round": request["round"],
        "token_ids": ids,
        "logprobs": [step[token].logprob for token, step in zip(ids, completion.logprobs)],
        "top_ids": top_ids,
        "top_logprobs": top_values,
        "cached_tokens": output.num_cached_tokens,
        "finish_reason": completion.finish_reason,
    }


class WrongEngine(Exception):
    """The engine that would run is not the expected one."""


def check_engine(job, loaded, channel):
    """Raise WrongEngine, before anything is generated, if the other engine was loaded."""
    expected = job.get("engine")
    if expected is not None and expected["kind"] != loaded:
        channel.phase("engine")
        raise WrongEngine("vLLM loaded %s, but %s. %s" % (loaded, expected["because"], expected["way_out"]))


@contextlib.contextmanager
def refusal_of_engine(job, channel):
    """Raise WrongEngine if vLLM raises while it chooses the engine."""
    try:
        yield
    except NotImplementedError as error:
        expected = job.get("engine")
        frames = traceback.extract_tb(error.__traceback__)
        if expected is None or not any(frame.name == CHOOSES_ENGINE for frame in frames):
            raise
        channel.phase("engine")
        raise WrongEngine(
            "vLLM refuses the engine %s here (%s), but %s. %s"
            % (expected["kind"], str(error).rstrip("."), expected["because"], expected["way_out"])
        ) from error


def resolve(llm, reads):
    """Return the loaded configuration. reads: of the job.

    What was requested or logged does not count: 0.18.1 on CPU logs that asynchronous scheduling is enabled before its
    platform turns it off.
    """
    config = llm.llm_engine.vllm_config
    resolved = {"engine": "V1" if ".v1." in type(llm.llm_engine).__module__ else "V0"}
    resolved.update((name, read(config, paths)) for name, paths in {**RESOLVED, **reads}.items())
    resolved["default_sampling_params"] = config.model_config.get_diff_sampling_param()
    return {name: _plain(value) for name, value in resolved.items()}


def read(config, paths):
    """Return the value at the first path that this release has; None if it has none of them."""
    for path in paths:
        with contextlib.suppress(AttributeError):
            return operator.attrgetter(path)(config)
    return None


def _plain(value):
    """Return JSON's types unchanged, enumerations by name, everything else as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "name"):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value).replace("torch.", "")
