"""What OpenRLHF's Ray actors hand to vLLM: a fixed list of keyword arguments, from every release alike.

Source: openrlhf 0.11.2 trainer/ray/vllm_engine.py:264 and the same call in 0.8.6, 0.8.11, 0.9.9 and 0.10.4.
"""

from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.openrlhf.options import Options
from rlaudit.configs.draft import Draft, by_code, by_file, known
from rlaudit.configs.python_kwargs import neutral_sampling
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.vllm.milestones import INSECURE_SERIALIZATION, LOGPROBS_MODE

_ENGINE = "openrlhf 0.11.2 trainer/ray/vllm_engine.py"
_CLI = "openrlhf 0.11.2 cli/train_ppo_ray.py"
_LOSS = "openrlhf 0.11.2 models/loss.py"


def collect(draft: Draft, options: Options, vllm: Version) -> None:
    """Fill every part of the draft from one command's options."""
    corrected, node, mode = correction(options)
    _engine(draft, options)
    _lengths(draft, options)
    _sampling(draft, options, corrected)
    if corrected and vllm >= LOGPROBS_MODE:
        note = f"passed with importance sampling correction only ({_CLI}:78, vllm_engine.py:293)"
        draft.engine.by_code("logprobs_mode", "processed_logprobs", note)
        draft.engine.by_code("max_logprobs", 1, note)
    _environment(draft, options, vllm)
    _facts(draft, options, corrected, node, mode)
    _updates(draft, options)
    _rest(draft, options)


def correction(options: Options) -> tuple[bool, Node | None, str]:
    """Whether it is on, what says so, and its kind. It is off by default in every release."""
    for name in ("algo.advantage.is_correction_enable", "enable_vllm_is_correction"):
        if name in options.nodes:
            kind = known(options.get("correction_type"), "tis")
            return True, options.nodes[name], str(kind)
    level = options.nodes.get("algo.advantage.is_correction_level")
    if level is None or level.value == "off":
        return False, level, ""
    how = known(options.nodes.get("algo.advantage.is_correction_mode"), "mask")
    return True, level, f"{level.value} {how}"


def _engine(draft: Draft, options: Options) -> None:
    defaults: dict[str, Any] = {"tensor_parallel_size": 1, "gpu_memory_utilization": 0.95}
    for name, default in defaults.items():
        node = options.get(name)
        draft.engine[name] = (
            by_code(name, default, f"OpenRLHF's default ({_CLI})") if node is None else by_file(name, node)
        )
    for name in ("enable_prefix_caching", "enforce_eager", "enable_sleep_mode"):
        node = options.get(name)
        if node is not None:
            draft.engine.by_file(name, node, True)
        else:
            draft.engine.by_code(name, False, f"passed as False where the flag is not given ({_ENGINE}:264)")
    draft.engine.by_code("dtype", "bfloat16", f"literal ({_ENGINE}:273)")
    draft.engine.by_code("trust_remote_code", True, f"literal ({_ENGINE}:274)")
    parallel = draft.engine["tensor_parallel_size"].value
    backend: Any = "uni" if parallel == 1 else "ray"
    if isinstance(parallel, Unknown):
        backend = Unknown("uni with tensor parallel size 1, else ray")
    draft.engine.by_code("distributed_executor_backend", backend, f"follows tensor parallel size ({_ENGINE}:237)")
    seed = options.get("seed")
    note = f"seed + index of the engine: this is the first engine's ({_ENGINE}:269)"
    draft.engine["seed"] = by_code("seed", 42, note) if seed is None else by_file("seed", seed, note=note)


def _lengths(draft: Draft, options: Options) -> None:
    node = options.get("max_len")
    if node is not None:
        draft.engine.by_file("max_model_len", node)
        return
    halves = [options.nodes.get(name) for name in ("prompt_max_len", "generate_max_len")]
    if any(halves):
        lengths = [1024 if half is None else known(half) for half in halves]
        total: Any = Unknown("prompt_max_len + generate_max_len is not known")
        if all(isinstance(length, int) for length in lengths):
            total = sum(lengths)
        written = next(half for half in halves if half is not None)
        note = "prompt_max_len + generate_max_len (openrlhf 0.8.6)"
        draft.engine.by_file("max_model_len", written, total, note)
    else:
        note = f"OpenRLHF's default from 0.9 on ({_CLI}); in 0.8 two defaults of 1024 add up to the same"
        draft.engine.by_code("max_model_len", 2048, note)


def _sampling(draft: Draft, options: Options, corrected: bool) -> None:
    for name in ("temperature", "top_p"):
        node = options.get(name)
        draft.sampling[name] = (
            by_code(name, 1.0, f"OpenRLHF's default ({_CLI})") if node is None else by_file(name, node)
        )
    source = "openrlhf 0.11.2 trainer/ppo_utils/samples_generator.py:199"
    draft.sampling.by_code("top_k", -1, f"no option sets it ({source})")
    draft.sampling.by_code("min_tokens", 1, source)
    tokens = options.get("max_tokens") or options.nodes.get("generate_max_len")
    if tokens is not None:
        draft.sampling.by_file("max_tokens", tokens)
    neutral_sampling(draft, f"SamplingParams are built in code and take no generation_config.json ({source})")
    note = f"asked for with importance sampling correction only ({source})"
    draft.sampling.by_code("logprobs", 1 if corrected else None, note)


def _environment(draft: Draft, options: Options, vllm: Version) -> None:
    if options.is_on("full_determinism"):
        draft.environment.by_code("VLLM_ENABLE_V1_MULTIPROCESSING", "0", f"full determinism ({_ENGINE}:100)")
    if vllm >= INSECURE_SERIALIZATION:
        draft.environment.by_code("VLLM_ALLOW_INSECURE_SERIALIZATION", "1", f"{_ENGINE}:96")
    value, note = _use_v1(options)
    if value is not None:
        draft.environment.by_code("VLLM_USE_V1", value, note)


def _use_v1(options: Options) -> tuple[Any, str]:
    """Set to 1 by every engine of 0.9 and 0.10; by the asynchronous one only in 0.8; not set any more in 0.11."""
    if "algo.advantage.is_correction_level" in options.nodes:
        return None, "not set any more in 0.11 (is_correction_level is there since)"
    newer = options.get("correction_type") or options.get("partial_rollout")
    if not newer and not options.dotted and {"prompt_max_len", "generate_max_len", "bf16"} & options.nodes.keys():
        if options.is_on("async") or options.is_on("agent"):
            return "1", "openrlhf 0.8.6 trainer/ray/vllm_engine_async.py:42"
        return None, "the synchronous engine of 0.8 leaves it alone (openrlhf 0.8.6 trainer/ray/vllm_engine.py)"
    note = "openrlhf 0.10.4 trainer/ray/vllm_engine.py:107; 0.11 does not set it any more, and V1 is the default anyway"
    return "1", note


def _facts(draft: Draft, options: Options, corrected: bool, node: Node | None, mode: str) -> None:
    draft.trains("divides_by_temperature", True, "`logits.div_(temperature)` (openrlhf 0.11.2 models/utils.py:174)")
    draft.trains("replays_filters", False, "the trainer's softmax runs over the whole vocabulary (models/utils.py)")
    draft.trains("recomputes_old_logprobs", True, "the actor scores rollouts before training (experience maker)")
    draft.trains("reads_prompt_logprobs", False, "only sampled tokens' logprobs are asked for")
    note = f"off unless it is asked for, in every release ({_LOSS}:216)"
    draft.trains("importance_sampling_correction", corrected, note, node)
    draft.trains("uses_rollout_logprobs", corrected, f"logprobs are asked for with the correction only ({_LOSS}:216)")
    if corrected:
        threshold = options.get("correction_threshold")
        limit = f"threshold {threshold.plain()}" if threshold is not None else "threshold 0.5 5.0 by default"
        draft.trains("importance_sampling_mode", mode, limit, node)
    loss = known(options.get("policy_loss_type"), "ppo")
    draft.trains(
        "logs_mismatch", corrected and loss == "ppo", f"vllm_kl, with the correction and the ppo loss ({_LOSS}:247)"
    )
    dtype = options.get("param_dtype")
    names = {"bf16": "bfloat16", "fp16": "float16"}
    if dtype is not None and isinstance(dtype.value, str) and dtype.value in names:
        draft.trains("dtype", names[dtype.value], "param_dtype", dtype)
    elif dtype is None and (options.dotted or "bf16" in options.nodes):
        draft.trains(
            "dtype", "bfloat16", f"OpenRLHF's default from 0.9 on, --bf16 before ({_CLI})", options.nodes.get("bf16")
        )
    engines = options.get("num_engines")
    if engines is not None:
        draft.trains("replicas", engines.value, "--vllm.num_engines", engines)
    draft.trains("seeds_replicas", True, f"seed + index of the engine ({_ENGINE}:269)")


def _updates(draft: Draft, options: Options) -> None:
    partial = options.is_on("partial_rollout")
    if partial:
        note = f'partial rollouts: pause_generation(mode="keep") around the update ({_ENGINE}:131)'
        draft.trains("pause_mode", "keep", note)
        draft.trains("pause_clears_cache", True, f"not passed: vLLM's default ({_ENGINE}:131)")
        draft.trains("pause_arguments", ["mode"], note)
        draft.trains("weight_updates", "in flight", note)
    else:
        draft.trains("weight_updates", "between rollouts", "without partial rollouts an update waits for the batch")
    cached = options.is_on("enable_prefix_caching")
    note = (
        "reset_prefix_cache() is sent before the weights, not after (openrlhf 0.11.2 trainer/ray/ppo_actor.py:410)"
        if cached else "prefix caching is off, so nothing is reset (ppo_actor.py:410)"
    )  # fmt: skip
    draft.trains("resets_prefix_cache", cached, note)


def _rest(draft: Draft, options: Options) -> None:
    meant = [
        name for name in ("num_engines", "sync_backend", "sync_with_ray", "generate_batch_size") if options.get(name)
    ]
    if meant:
        draft.not_seen.append(f"{', '.join(meant)}: how engines are driven; no setting of the engine itself")
    unknown = [name for name in options.nodes if "vllm" in name and name not in options.known_names()]
    if unknown:
        draft.not_seen.append(f"--{', --'.join(unknown)}: no option of the OpenRLHF releases read here")


def finished(draft: Draft, options: Options, place: Any, write: Any) -> RolloutConfig:
    """The config. The engine is an AsyncLLMEngine in a Ray actor since 0.9, and either kind in 0.8."""
    return draft.done(model=options.get("model"), offline=False, place=place, write=write)
