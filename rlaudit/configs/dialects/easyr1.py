"""EasyR1: YAML with `worker.rollout`, or `config=FILE worker.rollout.x=y` after `python -m verl.trainer.main`.

A fork of verl with a config of its own: dataclasses filled by OmegaConf, so an unknown key stops the start. The engine
is `LLM(...)` in the trainer's process. Read at 008c773 (verl/workers/rollout/vllm_rollout_spmd.py, config.py).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, arriving, is_said, known
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against, part_of, words_of
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.hydra_dotlist import Overridden, overridden, take_environment
from rlaudit.configs.mapping_writer import dotlist_writer, one_mapping, plain_spelling, prefixed
from rlaudit.configs.merging import mapping_of, merged, reread
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries

if TYPE_CHECKING:
    from rlaudit.configs.syntax.shell_command import Command

_SPMD = "EasyR1 vllm_rollout_spmd.py (008c773)"
_KEYS = "worker.rollout."
_MODULE = "verl.trainer.main"
# RolloutConfig's fields that are arguments of LLM, with their defaults.
_FIELDS: Mapping[str, Any] = {
    "seed": 1, "gpu_memory_utilization": 0.6, "enforce_eager": False, "enable_chunked_prefill": False,
    "tensor_parallel_size": 2, "max_num_batched_tokens": 8192, "disable_log_stats": True,
}  # fmt: skip
_SAMPLING: Mapping[str, Any] = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
_OTHERS = {
    "name", "n", "limit_images", "dtype", "ignore_eos", "max_model_len", "disable_tqdm", "val_override_config",
    "trust_remote_code", "prompt_length", "response_length",
}  # fmt: skip
# Fields of older copies, which took SamplingParams' own names as well.
_OLDER = {"do_sample", "free_cache_engine", "max_num_seqs"}
_OPTIONS = (
    "worker.rollout.n", "worker.rollout.name", "worker.rollout.val_override_config",
    *(f"worker.actor.{name}" for name in (
        "clip_ratio_low", "clip_ratio_high", "clip_ratio_dual", "loss_type", "loss_avg_mode", "ppo_epochs",
        "global_batch_size", "use_kl_loss", "kl_loss_coef", "kl_loss_type",
    )),
    "algorithm.adv_estimator", "algorithm.disable_kl", "algorithm.use_kl_loss", "algorithm.kl_coef",
    "algorithm.kl_penalty", "algorithm.kl_type", "algorithm.kl_target", "algorithm.kl_horizon",
    "data.rollout_batch_size", "data.max_prompt_length", "data.max_response_length",
)  # fmt: skip
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_LITERALS = {
    "load_format": "dummy", "distributed_executor_backend": "external_launcher", "disable_custom_all_reduce": True,
    "enable_sleep_mode": True, "skip_tokenizer_init": False,
}  # fmt: skip
_CONFIG = "verl/workers/rollout/config.py#RolloutConfig"
# Older copies have verl's layout, as verl before v0.3.
FILES = FrameworkFiles(
    "verl",
    engine=("verl/workers/rollout/vllm_rollout_spmd.py", "verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py"),
    options=(_CONFIG,),
)


def recognise(source: Source) -> bool:
    """Whether `worker.rollout` is set, in a file or on a command of EasyR1's program."""
    text = source.text
    if "worker" not in text or ("rollout" not in text and _MODULE not in text):
        return False
    root = mapping_of(source)
    return (root is not None and _is_whole(root)) or bool(_commands(source))


def _is_whole(root: Node) -> bool:
    rollout = root.get("worker", "rollout")
    return rollout is not None and isinstance(rollout.value, dict) and root.get("worker", "actor") is not None


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The engine of the file, or of every command in it."""
    own = mapping_of(source)
    if own is not None and _is_whole(own):
        return (_config(source, own, own.get("worker", "rollout"), None, (), vllm),)
    return tuple(_of_command(source, one, vllm) for one in _commands(source))


def _commands(source: Source) -> tuple[Overridden, ...]:
    """Commands that run EasyR1's program, which verl's is not called."""
    return tuple(
        one for one in overridden(source, "worker.") if any(word.value == _MODULE for word in one.command.words)
    )


def _of_command(source: Source, one: Overridden, vllm: Version) -> RolloutConfig:
    named = one.root.get("config")
    name = named.value if named is not None else None
    base = source.neighbour(name) or _from_above(source, name) if isinstance(name, str) else None
    tree = mapping_of(base) if base is not None else None
    root = one.root if tree is None else reread(merged(tree, one.root))
    missing = () if tree is not None else (str(name or "the config that the command starts from"),)
    return _config(source, root, None, one.command, missing, vllm, (base.path,) if base is not None else ())


def _from_above(source: Source, name: str) -> Source | None:
    """A file named from the root of the repository, above the script."""
    return next((found for up in ("..", "../..") if (found := source.neighbour(f"{up}/{name}")) is not None), None)


def _config(
    source: Source, root: Node, own: Node | None, command: "Command | None", missing: tuple[str, ...], vllm: Version,
    parts: tuple[str, ...] = (),
) -> RolloutConfig:  # fmt: skip
    draft = Draft("easyr1", source.path, parts=parts)
    rollout = root.get("worker", "rollout") or Node({}, root.place)
    checkout = FILES.checkout(source)
    fields = _fields(checkout)
    _engine(draft, root, rollout, fields)
    _sampling(draft, root, rollout)
    _facts(draft, root)
    draft.list_options(root, *_OPTIONS)
    draft.list_rest(rollout, "worker.rollout", lambda path: checkout is not None and checkout.has(path))
    draft.not_seen += [f"{one} is not beside this file; EasyR1's defaults are assumed" for one in missing]
    if command is not None:
        take_environment(draft, source, command)
        write = dotlist_writer(command, prefixed(_KEYS), source)
    else:
        write = one_mapping(own, plain_spelling, source.text)
    hold_against(draft, FILES, checkout, vllm)
    place = command.place if command is not None else (rollout.key or rollout.place)

    def write_field(name: str, value: Any) -> Any:
        return write(name, value) if name in _FIELDS and name in fields else None

    return draft.done(
        model=root.get("worker", "actor", "model", "model_path"), offline=True, place=place, write=write_field
    )


def _fields(checkout: Checkout | None) -> frozenset[str]:
    """What RolloutConfig has, of the copy that is there or of any."""
    own = part_of(checkout, _CONFIG) if checkout is not None else None
    return words_of(own) if own is not None else frozenset({*_FIELDS, *_SAMPLING, *_OTHERS, *_OLDER})


def _engine(draft: Draft, root: Node, rollout: Node, fields: frozenset[str]) -> None:
    for name, default in _FIELDS.items():
        draft.engine.written_or(name, rollout.get(name), default, f"RolloutConfig.{name} of EasyR1's config.py")
    for name, value in _LITERALS.items():
        draft.engine.by_code(name, value, _SPMD)
    dtype = rollout.get("dtype")
    if is_said(dtype):
        draft.engine.by_file("dtype", dtype, _DTYPES.get(str(dtype.value), arriving(dtype)))
    else:
        draft.engine.by_code("dtype", "bfloat16", "RolloutConfig.dtype of EasyR1's config.py")
    length = rollout.get("max_model_len")
    sizes = [known(root.get("data", name), default) for name, default in
             (("max_prompt_length", 512), ("max_response_length", 512))]  # fmt: skip
    if is_said(length):
        draft.engine.by_file("max_model_len", length)
    elif all(isinstance(size, int) for size in sizes):
        draft.engine.by_code("max_model_len", sum(sizes), f"{_SPMD}: prompt and response length of data")
    for key, node in entries(rollout):
        if key not in fields:
            draft.lose(key, node, Loss.REFUSED, "EasyR1 stops: its RolloutConfig has no such field (config.py)")


def _sampling(draft: Draft, root: Node, rollout: Node) -> None:
    for name, default in _SAMPLING.items():
        draft.sampling.written_or(name, rollout.get(name), default, f"RolloutConfig.{name} of EasyR1's config.py")
    draft.sampling.written_or("max_tokens", root.get("data", "max_response_length"))
    draft.sampling.by_code("repetition_penalty", 1.0, f"{_SPMD} names no penalty in SamplingParams")


def _facts(draft: Draft, root: Node) -> None:
    draft.trains("divides_by_temperature", True, "EasyR1 dp_actor.py divides the logits by rollout.temperature")
    draft.trains("replays_filters", False, "EasyR1's actor takes its softmax over the full vocabulary")
    draft.trains("uses_rollout_logprobs", False, f"{_SPMD} asks for no logprobs")
    draft.trains("recomputes_old_logprobs", True, "EasyR1's actor computes old logprobs before it trains")
    draft.trains("importance_sampling_correction", False, "EasyR1 has no rollout correction (008c773)")
    draft.trains("logs_mismatch", False, "EasyR1 logs no mismatch: rollouts come without logprobs")
    note = "EasyR1 puts the engine to sleep between rollouts, which empties its cache, and wakes it with new weights"
    draft.trains("weight_updates", "between rollouts", note)
    draft.trains("resets_prefix_cache", True, note)
    draft.trains("salts_prefix_cache", False, "EasyR1 sends no cache salt")
    draft.trains("dtype", "bfloat16", "EasyR1's mixed precision of the actor (FSDPConfig.mp_param_dtype)")
    note = "EasyR1 seeds the CUDA generator of each data-parallel rank by itself (sharding_manager/fsdp_vllm.py)"
    draft.trains("seeds_replicas", True, note)
    nodes, gpus = (known(root.get("trainer", name)) for name in ("nnodes", "n_gpus_per_node"))
    ranks = draft.engine["tensor_parallel_size"].value
    devices = nodes * gpus if isinstance(nodes, int) and isinstance(gpus, int) else None
    missing = "nodes, GPUs and ranks are not all in this file"
    draft.count_replicas(devices, [ranks], "nodes x GPUs of the config", missing)


DIALECT = Dialect("easyr1", "EasyR1", 10, recognise, read)
