"""What ms-swift hands to vLLM, in colocate mode, and from `swift rollout`, the server of server mode.

`logprobs_mode` is passed from 3.11 on (not in 3.10.3), `vllm_engine_kwargs` is there from 3.10 on, and top-k 50 with
top-p 0.9 were the sampling defaults until 3.12.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.arguments import of_word, truth
from rlaudit.configs.dialects.ms_swift.release import COMPATIBLE, Releases, releases_of
from rlaudit.configs.dialects.ms_swift.trainer import ANOTHER_COMMAND, NO_TRAINER, collect_facts, collect_sampling
from rlaudit.configs.draft import Draft, is_said, known
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.framework_source.checkout import Checkout, shown
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.spelling import Write
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.milestones import PROCESSED_IS_FINAL

# Argument -> engine argument and default; None is not passed.
ENGINE: Mapping[str, tuple[str, Any]] = {
    "vllm_gpu_memory_utilization": ("gpu_memory_utilization", 0.9),
    "vllm_tensor_parallel_size": ("tensor_parallel_size", 1),
    "vllm_pipeline_parallel_size": ("pipeline_parallel_size", 1),
    "vllm_enable_expert_parallel": ("enable_expert_parallel", False),
    "vllm_max_num_seqs": ("max_num_seqs", None),
    "vllm_max_model_len": ("max_model_len", None),
    "vllm_disable_custom_all_reduce": ("disable_custom_all_reduce", True),
    "vllm_enforce_eager": ("enforce_eager", False),
    "vllm_limit_mm_per_prompt": ("limit_mm_per_prompt", None),
    "vllm_max_lora_rank": ("max_lora_rank", None),
    "vllm_enable_lora": ("enable_lora", None),
    "vllm_quantization": ("quantization", None),
    "vllm_reasoning_parser": ("reasoning_parser", None),
    "vllm_disable_cascade_attn": ("disable_cascade_attn", False),
    "vllm_mm_processor_cache_gb": ("mm_processor_cache_gb", None),
    "vllm_speculative_config": ("speculative_config", None),
    "vllm_data_parallel_size": ("data_parallel_size", None),
}
# Passed only where this vLLM has them; otherwise a warning says "Ignored".
GUARDED = {
    "enable_expert_parallel", "enable_sleep_mode", "disable_cascade_attn", "load_format", "mm_processor_cache_gb",
    "speculative_config", "logprobs_mode", "quantization",
}  # fmt: skip
# Written by the code over what vllm_engine_kwargs says.
_OVERRULED = {"enable_expert_parallel", "disable_cascade_attn", "logprobs_mode", "enable_prefix_caching", "seed"}
# What decides the objective, by its whole name: other options hold these words too.
_OBJECTIVE = ("beta", "epsilon", "epsilon_high", "delta", "loss_type", "num_iterations", "max_length")
_CONNECTION = (
    "use_vllm", "vllm_mode", "vllm_server_base_url", "vllm_server_host", "vllm_server_port", "vllm_server_timeout",
    "vllm_server_group_port", "vllm_use_async_engine", "async_generate",
)  # fmt: skip
_OF_SERVER = "swift/llm/argument/infer_args.py"
_HOMES = ("rlhf_trainers", "trainers/rlhf_trainer")
# An argument takes two steps to vLLM: the trainer calls ms-swift's VllmEngine, and that makes EngineArgs.
FILES = FrameworkFiles(
    "swift",
    engine=("swift/infer_engine/vllm_engine.py", "swift/llm/infer/infer_engine/vllm_engine.py"),
    options=(
        *(f"swift/{home}/{name}.py" for home in _HOMES for name in
          ("rollout_mixin", "base_rollout_mixin", "grpo_trainer", "args_mixin")),
        "swift/trainers/arguments.py", _OF_SERVER,
    ),
    prefix="vllm_",
)  # fmt: skip
_WORKER_SEED = "`swift rollout` gives each worker a seed of its own since 3.9"
_COLOCATE, _UNWRITTEN = "colocate", "not written"
_SOURCE = "ms-swift 4.6.0 infer_engine/vllm_engine.py:332"


def swift_config(
    source: Source, kind: str, arguments: Mapping[str, Node], vllm: Version, place: Place | None, write: Write,
    parts: tuple[str, ...] = (),
) -> RolloutConfig:  # fmt: skip
    """One engine. kind: `rlhf` for a trainer, `rollout` for the server."""
    draft = Draft("ms_swift", source.path, parts=parts)
    checkout = FILES.checkout(source)
    told = releases_of(source, arguments, vllm, checkout)
    draft.list_flags(arguments, "use_vllm", "vllm_mode", "importance_sampling", "num_generations", "rollout_importance")
    draft.list_flags({name: arguments[name] for name in _OBJECTIVE if name in arguments}, *_OBJECTIVE)
    mode = "rollout" if kind == "rollout" else _mode(arguments, checkout)
    if mode == _UNWRITTEN:
        draft.not_seen.append("vllm_mode is not written: ms-swift up to 3.10 colocates then, later releases stop")
    # The old name wins over the new one (ms-swift 3.8.0, trainers/arguments.py:202).
    arguments = {**arguments, **{new: arguments[old] for old, new in COMPATIBLE.items() if old in arguments}}
    mode = _COLOCATE if mode == _UNWRITTEN else mode
    if kind != "rollout":
        collect_sampling(draft, arguments, told)
    collect_facts(draft, arguments, kind)
    _not_settings(draft, arguments, mode)
    model = arguments.get("model") or arguments.get("model_id_or_path")
    if mode == "server" or isinstance(mode, Unknown):
        reason = (
            mode.reason if isinstance(mode, Unknown) else "the engine is `swift rollout`, started by another command"
        )
        _not_its_own(draft, arguments, reason)
        said = f"every engine argument: {reason}"
        draft.not_seen.append(said)
        hold_against(draft, replace(FILES, engine=()), checkout, vllm)
        return replace(draft.done(model=model, place=place, write=write), engine=Elsewhere(reason, said=said))
    _engine(draft, arguments, vllm, mode, told)
    if mode == "rollout" and checkout is not None:
        draft.engine.by_code("seed", Unknown(_WORKER_SEED), _WORKER_SEED)
    looked_up = replace(FILES, options=(_OF_SERVER,)) if mode == "rollout" else FILES
    hold_against(draft, looked_up, checkout, vllm)
    config = draft.done(model=model, offline=True, place=place, write=write)
    if kind == "rollout":
        config = replace(config, sampling=Elsewhere(ANOTHER_COMMAND, said=NO_TRAINER))
    return config


def _mode(arguments: Mapping[str, Node], checkout: Checkout | None) -> str | Unknown:
    """Without vllm_mode only ms-swift up to 3.10 runs, which colocates by default, before 3.5 always."""
    node = arguments.get("vllm_mode")
    if not is_said(node):
        if checkout is None or checkout.version is not None:
            return _UNWRITTEN
        return Unknown(f"vllm_mode is not written, and its default in {shown(checkout.root)} is not followed")
    return node.value if isinstance(node.value, str | Unknown) else Unknown(f"vllm_mode is {node.value!r}")


def _engine(draft: Draft, arguments: Mapping[str, Node], vllm: Version, mode: str, told: Releases) -> None:
    catalogue = Catalogue.at(vllm)
    for argument, (name, default) in ENGINE.items():
        node = arguments.get(argument)
        if is_said(node):
            _written(draft, name, node, catalogue)
        elif default is not None and name in catalogue.engine:
            draft.engine.by_code(name, default, f"ms-swift's default of {argument} ({_SOURCE})")
    _prefix_cache(draft, arguments, mode)
    note = f"the checkpoint's dtype or --torch_dtype, passed always ({_SOURCE})"
    draft.engine.written_or("dtype", arguments.get("torch_dtype"), "auto", note)
    draft.engine.by_code("trust_remote_code", True, f"literal ({_SOURCE})")
    if mode == "colocate":
        source = "ms-swift 4.6.0 rlhf_trainers/rollout_mixin.py:508"
        draft.engine.by_code("seed", 0, f"process index // tensor parallel size: the first engine's ({source})")
        draft.engine.by_code("distributed_executor_backend", "external_launcher", f"literal ({source})")
        level = arguments.get("sleep_level")
        sleeps: Any = known(level, 0)
        draft.engine.by_code(
            "enable_sleep_mode", sleeps > 0 if isinstance(sleeps, int) else Unknown("sleep_level"), "sleep_level > 0"
        )
    _logprobs(draft, vllm, told)
    _engine_kwargs(draft, arguments, catalogue)


def _written(draft: Draft, name: str, node: Node, catalogue: Catalogue) -> None:
    if name in GUARDED and name not in catalogue.engine:
        reason = f"vLLM {catalogue.version} has no {name}: ms-swift warns that it is ignored ({_SOURCE})"
        draft.lose(name, node, Loss.UNKNOWN_KEY, reason)
    else:
        draft.engine.by_file(name, _structured(node))


def _prefix_cache(draft: Draft, arguments: Mapping[str, Node], mode: str) -> None:
    """True where the trainer builds the engine; `swift rollout` passes it only where it is written, since 3.9."""
    node = arguments.get("vllm_enable_prefix_caching")
    name = "enable_prefix_caching"
    if is_said(node):
        draft.engine.by_file(name, node)
    elif mode == "colocate":
        note = "ms-swift's default of vllm_enable_prefix_caching (4.6.0 rlhf_trainers/args_mixin.py:173)"
        draft.engine.by_code(name, True, note)


def _logprobs(draft: Draft, vllm: Version, told: Releases) -> None:
    """processed_logprobs from ms-swift 3.11 on, where vLLM is 0.10.2 or later; earlier ms-swift passes nothing."""
    passes = told.since("3.11")
    if vllm < PROCESSED_IS_FINAL or passes is False:
        return
    note = "passed from ms-swift 3.11 on with vLLM 0.10.2 or later (4.6.0 rlhf_trainers/rollout_mixin.py:500)"
    value: Any = "processed_logprobs" if passes else Unknown(f"{told.because}: {note}, nothing before")
    draft.engine.by_code("logprobs_mode", value, f"{note}; {told.because}")


def _engine_kwargs(draft: Draft, arguments: Mapping[str, Node], catalogue: Catalogue) -> None:
    node = arguments.get("vllm_engine_kwargs")
    if not is_said(node):
        return
    tree = _structured(node)
    if not isinstance(tree.value, dict):
        unknown = tree.value if isinstance(tree.value, Unknown) else Unknown("it is no JSON object")
        draft.not_seen.append(f"vllm_engine_kwargs ({unknown.reason}): it may set any engine argument")
        return
    for name, child in tree.items():
        if name in _OVERRULED and name in draft.engine and draft.engine[name].value is not None:
            reason = f"ms-swift writes its own {name} over vllm_engine_kwargs ({_SOURCE})"
            draft.lose(name, child, Loss.OVERRULED, reason)
        elif name not in catalogue.engine:
            reason = f"vLLM {catalogue.version} has no such argument: TypeError when the engine is built"
            draft.lose(name, child, Loss.UNKNOWN_KEY, reason)
        else:
            draft.engine.by_file(name, child)


def _structured(node: Node) -> Node:
    """A JSON string as the mapping it spells; every part at the place of the string."""
    return of_word(node) if isinstance(node.value, str) else node


def _not_its_own(draft: Draft, arguments: Mapping[str, Node], reason: str) -> None:
    for argument in (*ENGINE, "vllm_enable_prefix_caching", "vllm_engine_kwargs"):
        node = arguments.get(argument)
        if not is_said(node):
            continue
        name = ENGINE.get(argument, (argument.removeprefix("vllm_"), None))[0]
        draft.lose(name, node, Loss.NOT_PASSED, f"{reason}: write it there")


def _not_settings(draft: Draft, arguments: Mapping[str, Node], mode: str | Unknown) -> None:
    found = [name for name in _CONNECTION if name in arguments]
    if found:
        how = mode.reason if isinstance(mode, Unknown) else f"in {mode} mode"
        draft.not_seen.append(f"{', '.join(found)}: where and how the engine runs ({how}), no setting of it")
    other = [
        name for name in arguments
        if name.startswith("vllm_") and name not in ENGINE and name not in _CONNECTION
        and name not in {"vllm_enable_prefix_caching", "vllm_engine_kwargs"}
    ]  # fmt: skip
    if other:
        draft.not_seen.append(f"{', '.join(other)}: no vLLM setting of the ms-swift releases read here")
    if truth(arguments.get("vllm_use_async_engine"), False) is True:
        draft.not_seen.append("vllm_use_async_engine: the asynchronous engine, whose batch defaults are a server's")
