"""What open-instruct's Ray actors hand to vLLM: a fixed list of engine arguments, and requests over HTTP or in process.

Source: allenai/open-instruct at 0051d7f (early 2026) and e6c3044 (2026-08), open_instruct/vllm_utils.py,
grpo_utils.py, data_loader.py.
"""

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rlaudit.configs.arguments import truth
from rlaudit.configs.draft import Draft, Settings, by_code, by_file, is_said, known
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.vllm.milestones import LOGPROBS_MODE

# Option -> engine argument and default.
ENGINE: Mapping[str, tuple[str, Any]] = {
    "vllm_tensor_parallel_size": ("tensor_parallel_size", 1),
    "vllm_enforce_eager": ("enforce_eager", False),
    "vllm_gpu_memory_utilization": ("gpu_memory_utilization", 0.9),
    "vllm_enable_prefix_caching": ("enable_prefix_caching", False),
    "vllm_attention_backend": ("attention_backend", None),
}
SWITCHES = {"vllm_enforce_eager", "vllm_enable_prefix_caching", "inflight_updates", "single_gpu_mode"}
# Options of the correction that came after logprobs were processed in code (2026-05-13, #1678).
_NEWER = {"rho_mask_metric", "rho_mask_source", "rho_mask_level", "rho_mask_direction", "rollout_importance_correction",
          "policy_ratio_denominator"}  # fmt: skip
# Words in the names of options that decide how rollouts are made and corrected, and are no argument of vLLM.
_OPTIONS = (
    "importance", "rho_", "policy_ratio_denominator", "use_vllm_logprobs", "inflight_updates", "vllm_num_engines",
    "vllm_sync_backend", "num_samples_per_prompt_rollout", "async_steps", "beta", "clip_lower", "clip_higher",
    "kl_estimator", "num_mini_batches", "response_length", "max_prompt_token_length",
)  # fmt: skip
# The switches of the three generations of the correction.
_CORRECTIONS = ("rollout_importance_correction", "truncated_importance_sampling_ratio_cap", "use_rho_correction")
_DRIVING = (
    "vllm_num_engines",
    "vllm_sync_backend",
    "vllm_inference_batch_size",
    "vllm_top_p",
    "vllm_gdn_prefill_backend",
)
# The first release that a commit after #1512 allows.
_FIRST_AFTER_1512 = Version("0.18.0")
_UTILS = "open-instruct 0051d7f vllm_utils.py, create_vllm_engines"


def collect(draft: Draft, arguments: Mapping[str, Node], vllm: Version) -> None:
    """Fill every part of the draft from the options of one command of open_instruct/grpo_fast.py."""
    _engine(draft, arguments)
    _logprobs(draft, arguments, vllm)
    _generation_config(draft, arguments, vllm)
    _sampling(draft, arguments)
    draft.environment.by_code("VLLM_ENABLE_V1_MULTIPROCESSING", "0", _UTILS)
    _facts(draft, arguments)
    _correction(draft, arguments)
    draft.list_flags(arguments, *_OPTIONS)
    driving = [name for name in _DRIVING if name in arguments and name != "vllm_top_p"]
    if driving:
        draft.not_seen.append(f"{', '.join(driving)}: how engines are driven; no setting that is read here")
    other = [name for name in arguments if name.startswith("vllm_") and name not in {*ENGINE, *_DRIVING}]
    if other:
        draft.not_seen.append(f"{', '.join(other)}: no vLLM option of the open-instruct commits read here")


def _engine(draft: Draft, arguments: Mapping[str, Node]) -> None:
    for option, (name, default) in ENGINE.items():
        node = arguments.get(option)
        if is_said(node):
            value = truth(node) if option in SWITCHES else known(node, node.value)
            draft.engine.by_file(name, node, value)
        elif default is not None:
            draft.engine.by_code(name, default, f"open-instruct's default of {option} ({_UTILS})")
    draft.engine.by_code("dtype", "bfloat16", f"literal ({_UTILS})")
    draft.engine.by_code("disable_cascade_attn", True, "literal, since #1006 (vllm#17652)")
    seed = arguments.get("seed")
    note = f"seed + index of the engine: this is the first engine's ({_UTILS})"
    draft.engine["seed"] = by_code("seed", 1, note) if not is_said(seed) else by_file("seed", seed, note=note)
    lengths = [known(arguments.get(name), 256) for name in ("max_prompt_token_length", "response_length")]
    written = next(
        (arguments[name] for name in ("response_length", "max_prompt_token_length") if name in arguments), None
    )
    total: Any = sum(lengths) if all(isinstance(one, int) for one in lengths) else Unknown("a length is not known")
    if any(name in arguments and isinstance(arguments[name].value, Unknown)
           for name in ("max_prompt_token_length", "response_length")):  # fmt: skip
        total = Unknown("max_prompt_token_length + response_length is not known")
    note = "max_prompt_token_length + response_length"
    draft.engine["max_model_len"] = (
        by_code("max_model_len", total, note) if written is None else by_file("max_model_len", written, total, note)
    )  # fmt: skip
    parallel = draft.engine["tensor_parallel_size"].value
    backend: Any = parallel if isinstance(parallel, Unknown) else ("uni" if parallel == 1 else "mp")
    note = f"uni with one GPU per engine, else mp (ray in commits of 2025) ({_UTILS})"
    draft.engine.by_code("distributed_executor_backend", backend, note)


def leave_open(draft: Draft, arguments: Mapping[str, Node], elsewhere: str) -> None:
    """Where the run's options stand somewhere else, an option that the command does not write is no default."""
    if not elsewhere:
        return
    reason = f"{elsewhere} may say it, and is not read here"
    unsaid: list[tuple[Settings, str, tuple[str, ...]]] = [
        *((draft.engine, name, (option,)) for option, (name, _) in ENGINE.items()),
        (draft.engine, "seed", ("seed",)),
        (draft.engine, "max_model_len", ("max_prompt_token_length", "response_length")),
        (draft.engine, "distributed_executor_backend", ("vllm_tensor_parallel_size",)),
        (draft.sampling, "temperature", ("temperature",)),
        (draft.sampling, "top_p", ("vllm_top_p",)),
        (draft.trainer, "weight_updates", ("inflight_updates",)),
        (draft.trainer, "dtype", ("model_dtype",)),
        (draft.trainer, "recomputes_old_logprobs", ("use_vllm_logprobs", "policy_ratio_denominator")),
        (draft.trainer, "importance_sampling_correction", _CORRECTIONS),
    ]
    for settings, name, options in unsaid:
        if name in settings and not any(is_said(arguments.get(option)) for option in options):
            settings[name] = by_code(name, Unknown(reason), reason)


def _logprobs(draft: Draft, arguments: Mapping[str, Node], vllm: Version) -> None:
    if vllm < LOGPROBS_MODE:
        return
    note = "passed in code since 2026-05-13 (#1678; e6c3044 vllm_utils.py:1284), nothing before"
    value: Any = "processed_logprobs"
    if not _NEWER & arguments.keys():
        value = Unknown(f"processed_logprobs is {note}; the commit is not known")
    draft.engine.by_code("logprobs_mode", value, note)


def _generation_config(draft: Draft, arguments: Mapping[str, Node], vllm: Version) -> None:
    note = "vllm in code since 2026-03-06 (#1512), vLLM's own default before"
    newer = vllm >= _FIRST_AFTER_1512 or _NEWER & arguments.keys()
    draft.engine.by_code("generation_config", "vllm" if newer else Unknown(f"{note}; the commit is not known"), note)


def _sampling(draft: Draft, arguments: Mapping[str, Node]) -> None:
    """Temperature, top_p and logprobs are sent; top_k and penalties are not, so a server takes the model's own."""
    for option, name, default in (("temperature", "temperature", 0.7), ("vllm_top_p", "top_p", 1.0)):
        draft.sampling.written_or(
            name, arguments.get(option), default, f"open-instruct's default of {option} (data_loader.py)"
        )
    draft.sampling.written_or("max_tokens", arguments.get("response_length"))
    draft.sampling.by_code("logprobs", 1, "SamplingConfig (open-instruct 0051d7f vllm_utils.py)")


def _facts(draft: Draft, arguments: Mapping[str, Node]) -> None:
    draft.trains("divides_by_temperature", True, "forward_for_logprobs divides by the temperature (grpo_utils.py)")
    draft.trains("replays_filters", False, "the trainer's softmax runs over the whole vocabulary (grpo_utils.py)")
    draft.trains("reads_prompt_logprobs", False, "only sampled tokens' logprobs are asked for")
    draft.trains(
        "uses_rollout_logprobs", True, "in debug metrics always, in the correction by default (grpo_utils.py:110)"
    )
    draft.trains("logs_mismatch", True, "debug/vllm_vs_local_logprob_diff_* (e6c3044 grpo_utils.py:347)")
    node = arguments.get("inflight_updates")
    if not is_said(node):
        reason = "inflight_updates is not written, and its default changed between commits"
        draft.trains("weight_updates", Unknown(reason), reason)
    else:
        on = truth(node)
        value: Any = on if isinstance(on, Unknown) else ("in flight" if on else "between rollouts")
        draft.trains("weight_updates", value, "inflight_updates: weights change while requests run", node)
    note = "cache_salt is the request's own id, so nothing cached outlives a request (0051d7f vllm_utils.py)"
    draft.trains("salts_prefix_cache", True, note)
    engines = arguments.get("vllm_num_engines")
    if engines is not None:
        draft.trains("replicas", engines.value, "--vllm_num_engines", engines)
    draft.trains("seeds_replicas", True, f"seed + index of the engine ({_UTILS})")
    dtype = arguments.get("model_dtype")
    if dtype is not None and isinstance(dtype.value, str):
        draft.trains("dtype", dtype.value, "model_dtype", dtype)
    elif dtype is None:
        draft.trains("dtype", "bfloat16", "open-instruct's default of model_dtype (grpo_utils.py)")


def _correction(draft: Draft, arguments: Mapping[str, Node]) -> None:
    """Three generations: a truncation cap, `use_rho_correction`, `rollout_importance_correction`."""
    direct = truth(arguments.get("use_vllm_logprobs"), False) is True
    denominator = arguments.get("policy_ratio_denominator")
    direct = direct or (denominator is not None and denominator.value == "rollout_policy")
    draft.trains(
        "recomputes_old_logprobs", not direct, "unless use_vllm_logprobs or policy_ratio_denominator rollout_policy"
    )
    kind, cap, switch = (arguments.get(name) for name in _CORRECTIONS)
    if kind is not None:
        # The word none reads as nothing.
        on: Any = kind.value if isinstance(kind.value, Unknown) else kind.value not in (None, "none")
        draft.trains("importance_sampling_correction", on, "rollout_importance_correction", kind)
        if on is not False:
            draft.trains("importance_sampling_mode", kind.value, "rollout_importance_correction", kind)
    elif cap is not None:
        value = known(cap)
        on = value > 0 if isinstance(value, int | float) else Unknown("the cap is not known")
        draft.trains("importance_sampling_correction", on, "truncated_importance_sampling_ratio_cap, 0 is off", cap)
        draft.trains("importance_sampling_mode", "truncate", f"cap {value}", cap)
    elif switch is not None:
        draft.trains("importance_sampling_correction", truth(switch), "use_rho_correction", switch)
        draft.trains("importance_sampling_mode", "rho clamp and mask", "use_rho_correction", switch)
    else:
        reason = "on by default in commits of 2026 (clamp at 2.0), off in earlier ones, and the commit is not known"
        draft.trains("importance_sampling_correction", Unknown(reason), reason)
