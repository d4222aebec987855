"""RLinf: YAML with `rollout.rollout_backend: vllm`, whose `rollout.vllm` section goes to EngineArgs field by field.

Read at 0dac7ec (rlinf/workers/rollout/vllm/vllm_worker.py, rlinf/config.py: validate_rollout_cfg).
"""

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, arriving, is_said, known
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.hydra_defaults import composed, with_defaults
from rlaudit.configs.mapping_writer import two_mappings
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.own_backend import runs_vllm, with_own_backend
from rlaudit.configs.python_kwargs import neutral_sampling
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown, entries, within
from rlaudit.vllm.resolution.engine import has_v0

WORKER = "RLinf vllm_worker.py (0dac7ec)"
_CONFIG = "RLinf config.py (0dac7ec)"
# Field of `rollout` -> engine argument, and its default.
_FIELDS: Mapping[str, tuple[str, Any]] = {
    "tensor_parallel_size": ("tensor_parallel_size", None),
    "gpu_memory_utilization": ("gpu_memory_utilization", 0.65),
    "enforce_eager": ("enforce_eager", None),
    "max_running_requests": ("max_num_seqs", None),
}
# The same of `rollout.vllm`.
_OF_VLLM: Mapping[str, Any] = {
    "enable_chunked_prefill": True, "enable_prefix_caching": True, "max_num_batched_tokens": None,
}  # fmt: skip
_VARIABLES = ("attention_backend", "enable_flash_infer_sampler", "torch_profiler_dir")
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "16": "float16", "32": "float32"}
FILES = FrameworkFiles("rlinf", ("rlinf/workers/rollout/vllm/vllm_worker.py",))

_OPTIONS = (
    "rollout.rollout_backend", "rollout.return_logprobs",
    *(f"algorithm.{name}" for name in (
        "group_size", "ratio_clip_eps", "clip_ratio_low", "clip_ratio_high", "clip_ratio_c", "kl_beta", "loss_type",
        "loss_agg_func", "adv_type", "n_minibatches", "importance_sampling_fix",
    )),
)  # fmt: skip


def recognise(source: Source) -> bool:
    """Whether RLinf's rollout worker runs vLLM."""
    if "rollout_backend" not in source.text and not ("defaults" in source.text and "rollout" in source.text):
        return False
    root = with_defaults(source)
    return root is not None and runs_vllm(known(root.get("rollout", "rollout_backend"))) and _is_rlinf(root)


def _is_rlinf(root: Node) -> bool:
    return root.get("rollout", "vllm") is not None or root.get("cluster", "component_placement") is not None


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The engine of the rollout workers, all with the same arguments."""
    config, own = composed(source), mapping_of(source)
    if config is None or own is None:
        return ()
    root, rollout = config.root, config.root.get("rollout")
    if rollout is None:
        return ()
    draft = Draft("rlinf", source.path, parts=config.parts, bare=True)
    _engine(draft, root, rollout)
    _environment(draft, rollout, vllm)
    _sampling(draft, root, rollout)
    _facts(draft, root, rollout)
    draft.list_options(root, *_OPTIONS)
    draft.not_seen += [f"{part}, which `defaults:` inherits, is not beside this file" for part in config.missing]
    draft.not_seen.append("the number of rollout engines: cluster.component_placement is not read")
    checkout = FILES.checkout(source)
    hold_against(draft, FILES, checkout, vllm)
    home = own.get("rollout") or own
    write = two_mappings(own.get("rollout"), _key, None, source.text)
    inner = two_mappings(own.get("rollout", "vllm"), lambda name: name if name in _OF_VLLM else None, None, source.text)
    done = draft.done(
        model=root.get("rollout", "model", "model_path") or root.get("rollout", "model_dir"),
        place=home.key or home.place,
        write=lambda name, value: (inner if name in _OF_VLLM else write)(name, value),
    )
    backend = known(rollout.get("rollout_backend"))
    return (with_own_backend(done, "RLinf", "rollout.rollout_backend", backend, checkout),)


def _key(name: str) -> str | None:
    return next((field for field, (argument, _) in _FIELDS.items() if argument == name), None)


def _engine(draft: Draft, root: Node, rollout: Node) -> None:
    for field, (name, default) in _FIELDS.items():
        draft.engine.written_or(name, rollout.get(field), default, f"default of rollout.{field} ({_CONFIG})")
    for name, default in _OF_VLLM.items():
        draft.engine.written_or(name, rollout.get("vllm", name), default, f"default of rollout.vllm.{name} ({_CONFIG})")
    dtype = rollout.get("model", "precision") or root.get("actor", "model", "precision")
    if is_said(dtype):
        draft.engine.by_file("dtype", dtype, _DTYPES.get(str(dtype.value), arriving(dtype)), "rollout.model.precision")
    length = root.get("runner", "seq_length")
    if is_said(length):
        draft.engine.by_file("max_model_len", length, note=f"{WORKER}: runner.seq_length")
    validates = known(rollout.get("validate_weight"), False)
    draft.engine.by_code("load_format", "auto" if validates else "dummy", f"{WORKER}: rollout.validate_weight")
    draft.engine.by_code("enable_sleep_mode", True, WORKER)
    for key, node in entries(rollout.get("vllm")):
        if key not in _OF_VLLM and key not in _VARIABLES:
            draft.lose(key, node, Loss.UNKNOWN_KEY, f"{WORKER} does not read rollout.vllm.{key}")


def _environment(draft: Draft, rollout: Node, vllm: Version) -> None:
    if has_v0(vllm):
        draft.environment.by_code("VLLM_USE_V1", "1", WORKER)
    draft.environment.by_code("VLLM_ENABLE_V1_MULTIPROCESSING", "1", WORKER)
    sampler = rollout.get("vllm", "enable_flash_infer_sampler")
    name = "VLLM_USE_FLASHINFER_SAMPLER"
    if is_said(sampler):
        told = arriving(sampler)
        value = told if isinstance(told, Unknown) else str(int(bool(told)))
        draft.environment.by_file(name, sampler, value, "rollout.vllm.enable_flash_infer_sampler")
    else:
        draft.environment.by_code(name, "1", f"default of rollout.vllm.enable_flash_infer_sampler ({_CONFIG})")
    backend = rollout.get("vllm", "attention_backend")
    note = "rollout.vllm.attention_backend"
    draft.environment.written_or("VLLM_ATTENTION_BACKEND", backend, "FLASH_ATTN", f"default of {note} ({_CONFIG})")


def _sampling(draft: Draft, root: Node, rollout: Node) -> None:
    given = root.get("algorithm", "sampling_params")
    for name in ("temperature", "top_p", "top_k", "repetition_penalty"):
        draft.sampling.written_or(name, within(given, name))
    draft.sampling.written_or("max_tokens", within(given, "max_new_tokens"))
    greedy, samples = within(given, "use_greedy"), within(given, "do_sample")
    for node, off in ((greedy, True), (samples, False)):
        if node is not None and node.value is off:
            draft.sampling.by_file("temperature", node, 0, "greedy")
    neutral_sampling(draft, f"{WORKER} builds SamplingParams itself")
    asked = rollout.get("return_logprobs")
    if asked is not None:
        told = arriving(asked)
        value = told if isinstance(told, Unknown) else 0 if told else None
        draft.sampling.by_file("logprobs", asked, value, "rollout.return_logprobs")


def _facts(draft: Draft, root: Node, rollout: Node) -> None:
    draft.trains("divides_by_temperature", True, "RLinf's actor divides the logits by sampling_params.temperature")
    draft.trains("replays_filters", False, "RLinf's actor takes its softmax over the full vocabulary")
    recomputes = root.get("algorithm", "recompute_logprobs")
    if recomputes is not None:
        draft.trains("recomputes_old_logprobs", arriving(recomputes), "algorithm.recompute_logprobs", recomputes)
    fix = root.get("algorithm", "importance_sampling_fix")
    corrected: Any = arriving(fix) if fix is not None else False
    draft.trains("importance_sampling_correction", corrected, "algorithm.importance_sampling_fix, off by default", fix)
    asked = rollout.get("return_logprobs")
    if fix is not None and corrected is True:
        draft.trains("uses_rollout_logprobs", True, "algorithm.importance_sampling_fix", fix)
    elif asked is not None:
        draft.trains("uses_rollout_logprobs", arriving(asked), "rollout.return_logprobs", asked)
    note = f"{WORKER}: sync_model_from_actor, then reset_prefix_cache"
    draft.trains("weight_updates", "between rollouts", note)
    draft.trains("resets_prefix_cache", True, note)
    draft.trains("salts_prefix_cache", False, "RLinf sends no cache salt")
    precision = root.get("actor", "model", "precision")
    if is_said(precision):
        told = _DTYPES.get(str(precision.value), arriving(precision))
        draft.trains("dtype", told, "actor.model.precision", precision)


DIALECT = Dialect("rlinf", "RLinf", 10, recognise, read)
