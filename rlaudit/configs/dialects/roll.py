"""ROLL: YAML whose `actor_infer.strategy_args` name vLLM and configure it under `strategy_config`.

`strategy_config` goes to AsyncEngineArgs as it is, after the strategy has taken out keys of its own and filled in
others (ROLL's vllm_strategy.py). Its trainer does not divide its logits by the sampling temperature: vLLM's raw
logprobs are the ones that agree with it.
"""

import re
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, arriving, is_said, known
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.hydra_defaults import composed, with_defaults
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.own_backend import runs_vllm, with_own_backend
from rlaudit.configs.python_kwargs import hand_over, neutral_sampling
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.second_engines import take_second_engines
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown, within

FILES = FrameworkFiles(
    "roll",
    engine=("roll/distributed/strategy/vllm_strategy.py",),
    options=("roll/configs/generating_args.py#GeneratingArguments",),
)
STRATEGY = "ROLL vllm_strategy.py (8eb27cc)"
_FILLED: dict[str, Any] = {
    "enforce_eager": False,
    "disable_custom_all_reduce": True,
    "enable_prefix_caching": True,
    "load_format": "dummy",
    "max_num_batched_tokens": 8192,
}
_TAKEN_OUT = {"VLLM_USE_V1", "sleep_level"}
_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_RANGE = re.compile(r"list\(range\((\d+),\s*(\d+)\)\)")

_OPTIONS = (
    "train_infer_correction", "enable_old_logprobs_recompute", "num_return_sequences_in_group", "pg_clip",
    "dual_clip_loss", "loss_agg_mode", "importance_sampling", "use_kl_loss", "kl_loss_coef", "ppo_epochs",
    "rollout_batch_size", "prompt_length", "response_length", "adv_estimator", "async_generation_ratio",
)  # fmt: skip


def recognise(source: Source) -> bool:
    """Whether `actor_infer.strategy_args` is there, or in a config that it inherits."""
    if "actor_infer" not in source.text and "defaults" not in source.text:
        return False
    root = with_defaults(source)
    return root is not None and root.get("actor_infer", "strategy_args") is not None


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The rollout engine of `actor_infer`; other clusters' engines (rewards) do not sample the policy."""
    config = composed(source)
    own = mapping_of(source)
    if config is None or own is None:
        return ()
    root = config.root
    arguments = root.get("actor_infer", "strategy_args")
    strategy = known(within(arguments, "strategy_name"))
    if arguments is None or not runs_vllm(strategy):
        return ()
    draft = Draft("roll", source.path, parts=config.parts)
    section = arguments.get("strategy_config")
    _engine(draft, root, section)
    _sampling(draft, root)
    _trainer(draft, root)
    checkout = FILES.checkout(source)
    hold_against(draft, FILES, checkout, vllm)
    draft.list_options(root, *_OPTIONS)
    take_second_engines(draft, root, "actor_infer", "actor_train", "reference", "critic")
    for missing in config.missing:
        draft.not_seen.append(f"{missing}, which `defaults:` inherits, is not beside this file")
    home = own.get("actor_infer", "strategy_args", "strategy_config")
    infer = own.get("actor_infer") or own
    done = draft.done(
        model=root.get("actor_infer", "model_args", "model_name_or_path") or root.get("pretrain"),
        place=(home or infer).key or infer.place,
        write=one_mapping(home, plain_spelling, source.text),
    )
    return (with_own_backend(done, "ROLL", "strategy_name", strategy, checkout),)


def _engine(draft: Draft, root: Node, section: Node | None) -> None:
    for name, value in _FILLED.items():
        draft.engine.by_code(name, value, f"{STRATEGY}: what it fills in where strategy_config is silent")
    hand_over(draft, section)
    for name in _TAKEN_OUT:
        draft.engine.pop(name, None)
    switch = within(section, "VLLM_USE_V1")
    if switch is not None:
        value = arriving(switch)
        told = value if isinstance(value, Unknown) else str(int(value) if isinstance(value, bool) else value)
        draft.environment.by_file("VLLM_USE_V1", switch, told, f"{STRATEGY}:80 exports it")
    else:
        draft.environment.by_code("VLLM_USE_V1", "1", f"{STRATEGY}:80 exports 1 where it is not said")
    _executor(draft)
    for name in ("dtype", "seed", "model", "trust_remote_code"):
        written = within(section, name)
        if written is not None:
            draft.lose(name, written, Loss.OVERRULED, f"{STRATEGY} sets it after strategy_config is read")
            draft.engine.pop(name, None)
    dtype = root.get("actor_infer", "model_args", "dtype")
    if dtype is not None:
        value = arriving(dtype)
        told = value if isinstance(value, Unknown) else _DTYPES.get(str(value), "auto")
        draft.engine.by_file("dtype", dtype, told, "model_args.dtype")
    else:
        draft.engine.by_code("dtype", "bfloat16", "ROLL's default of model_args.dtype is bf16")
    seed = root.get("seed")
    note = f"{STRATEGY}: every engine gets the pipeline's seed"
    draft.engine.by_code("seed", arriving(seed) if seed is not None else 42, note)
    draft.engine.by_code("trust_remote_code", True, STRATEGY)
    lora = root.get("actor_infer", "model_args", "lora_target")
    if is_said(lora):
        draft.engine.by_file("enable_lora", lora, True, "model_args.lora_target turns it on")
        draft.engine.by_code("load_format", "auto", f"{STRATEGY}: LoRA needs the base model's weights")


def _executor(draft: Draft) -> None:
    """With several ranks the strategy chooses it, and not every release chooses the same."""
    name = "distributed_executor_backend"
    parallel = draft.engine.get("tensor_parallel_size")
    size = parallel.value if parallel is not None else 1
    if name in draft.engine or not (isinstance(size, Unknown) or (isinstance(size, int) and size > 1)):
        return
    reason = "ROLL starts the ranks of an engine with ray in some releases and mp in others"
    draft.engine.by_code(name, Unknown(reason), reason)


def _sampling(draft: Draft, root: Node) -> None:
    names = {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "repetition_penalty": "repetition_penalty",
        "max_new_tokens": "max_tokens",
        "num_return_sequences": "n",
        "logprobs": "logprobs",
        "stop_strings": "stop",
    }
    given = root.get("actor_infer", "generating_args")
    for key, name in names.items():
        draft.sampling.written_or(name, within(given, key))
    for name in ("temperature", "top_p", "top_k"):
        if name not in draft.sampling:
            reason = f"actor_infer.generating_args.{name} is not in this file, and ROLL's default is not neutral"
            draft.sampling.by_code(name, Unknown(reason), reason)
    draft.sampling.unless_set("logprobs", 0, f"{STRATEGY}:create_sampling_params_for_vllm")
    neutral_sampling(draft, f"{STRATEGY} builds SamplingParams itself")


def _trainer(draft: Draft, root: Node) -> None:
    draft.trains("divides_by_temperature", False, "ROLL's trainer takes logprobs of the logits as they are (8eb27cc)")
    draft.trains("replays_filters", False, "ROLL's trainer takes its softmax over the full vocabulary")
    draft.trains("logs_mismatch", True, "ROLL utils/train_infer_corrections.py:96-172 logs actor/train_infer_*")
    draft.trains("uses_rollout_logprobs", True, "the engine's logprobs enter actor/train_infer_* and the correction")
    draft.trains("seeds_replicas", False, f"{STRATEGY}: every engine gets the pipeline's seed")
    draft.trains("salts_prefix_cache", False, "ROLL sends no cache salt")
    draft.trains("resets_prefix_cache", True, f"{STRATEGY}:364-370 resets it in load_states and offload_states")
    recompute = root.get("enable_old_logprobs_recompute")
    if recompute is not None:
        draft.trains("recomputes_old_logprobs", arriving(recompute), "enable_old_logprobs_recompute", recompute)
    weight = root.get("train_infer_correction", "is_weight", "enabled")
    if weight is not None:
        note = "train_infer_correction.is_weight.enabled"
        draft.trains("importance_sampling_correction", arriving(weight), note, weight)
    elif root.get("train_infer_correction") is None:
        draft.trains("importance_sampling_correction", False, "train_infer_correction is not in this file")
    dtype = root.get("actor_train", "model_args", "dtype")
    value = arriving(dtype) if dtype is not None else "bf16"
    told = value if isinstance(value, Unknown) else _DTYPES.get(str(value), str(value))
    draft.trains("dtype", told, "actor_train.model_args.dtype", dtype)
    ratio = known(root.get("async_generation_ratio"), 0)
    if isinstance(ratio, int | float) and ratio > 0:
        reason = "async_generation_ratio is above 0: whether sequences are under way at an update was not read"
        draft.trains("weight_updates", Unknown(reason), reason)
    else:
        draft.trains("weight_updates", "between rollouts", "async_generation_ratio is 0")
    _replicas(draft, root)


def _replicas(draft: Draft, root: Node) -> None:
    mapping = root.get("actor_infer", "device_mapping")
    text = known(mapping)
    span = _RANGE.fullmatch(text.strip()) if isinstance(text, str) else None
    devices = int(span[2]) - int(span[1]) if span is not None else None
    if devices is None and isinstance(text, str) and re.fullmatch(r"\[[\d,\s]+\]", text.strip()):
        devices = len(text.strip("[] ").split(","))
    per_worker = known(root.get("actor_infer", "num_gpus_per_worker"), 1)
    parallel = draft.engine.get("tensor_parallel_size")
    size = parallel.value if parallel is not None else per_worker
    missing = "actor_infer.device_mapping is not a plain list of GPUs"
    draft.count_replicas(devices, [size], "devices of actor_infer", missing, mapping)


DIALECT = Dialect("roll", "ROLL", 10, recognise, read)
