"""What TRL's trainers hand to vLLM: from GRPOConfig fields, whether in YAML, on a command line or in Python.

In colocate mode the trainer builds `LLM(...)` with a fixed list of arguments and nothing can be passed through. In
server mode the engine is started by another command, and this file does not say how.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft, by_code, is_said, known, moved_default
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.rollout_config import FrameworkReleases, Loss, RolloutConfig, Setting
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.edit import Edit
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.trl.release import TRL, Releases, releases
from rlaudit.configs.trl.sampling import collect_sampling
from rlaudit.configs.trl.trainer import collect_facts

Write = Callable[[str, Any], tuple[Edit, ...] | None]

_GENERATION = "trl/generation/vllm_generation.py"  # from 0.29 on
# Trainers that build an engine of their own.
_FILES = {
    trainer: FrameworkFiles(
        "trl",
        engine=(_GENERATION, f"trl/trainer/{trainer.lower()}_trainer.py"),
        options=(f"trl/trainer/{trainer.lower()}_config.py#{trainer}Config",),
        prefix="vllm_",
    )
    for trainer in ("GRPO", "RLOO")
}
_OTHERS = FrameworkFiles("trl", marks=_FILES["GRPO"].engine)
BORN = {"GRPO": "0.14", "RLOO": "0.22", "OnlineDPO": "0.14", "GOLD": "0.25", "AsyncGRPO": "1.0"}
# GRPOConfig field -> engine argument, default, and first release that passes it.
COLOCATED: Mapping[str, tuple[str, Any, str]] = {
    "vllm_gpu_memory_utilization": ("gpu_memory_utilization", 0.3, "0.18"),
    "vllm_tensor_parallel_size": ("tensor_parallel_size", 1, "0.18"),
    "vllm_model_impl": ("model_impl", "vllm", "0.21"),
    "vllm_enable_sleep_mode": ("enable_sleep_mode", False, "0.23"),
    "vllm_max_model_length": ("max_model_len", None, "0.26"),
}
# Fields of the engine that the trainer of 0.14 to 0.15 built on a device of its own; ignored in 0.16 and 0.17.
OWN_DEVICE: Mapping[str, str] = {
    "vllm_dtype": "dtype",
    "vllm_max_model_len": "max_model_len",
    "vllm_enable_prefix_caching": "enable_prefix_caching",
    "vllm_device": "device",
}
CONNECTION = (
    "use_vllm", "vllm_mode", "vllm_server_base_url", "vllm_server_host", "vllm_server_port", "vllm_server_timeout",
    "vllm_group_port", "vllm_sync_frequency",
)  # fmt: skip
# Words in the names of switches that decide how rollouts are made and corrected, and are no argument of vLLM.
OPTIONS = (
    *CONNECTION, "vllm_importance_sampling", "num_generations", "off_policy_mask", "cast_lm_head", "num_iterations",
    "steps_per_generation", "importance_sampling_level",
)  # fmt: skip
# What decides the objective, by its whole name: other options hold these words too.
OBJECTIVE = ("beta", "epsilon", "epsilon_high", "delta", "loss_type", "max_prompt_length")
# Field of GRPOConfig -> default before, first release with another, that one. Read in the wheels of release.py.
_MOVED: Mapping[str, tuple[Any, str, Any]] = {
    "beta": (0.04, "0.19", 0.0),
    "loss_type": ("bnpo", "0.22", "dapo"),
    "max_completion_length": (256, "1.10", 512),
    "use_bias_correction_kl": (False, "1.10", True),
    "vllm_mode": ("server", "1.0", "colocate"),
}
# Trainers with another default of vllm_gpu_memory_utilization.
_SHARES = {"OnlineDPO": 0.55, "GOLD": 0.9}
_LITERAL = "TRL 1.16.0 generation/vllm_generation.py:347"


def trainer_config(
    framework: str, source: Source, trainer: str, arguments: Mapping[str, Node], vllm: Version, place: Place | None,
    write: Write, parts: tuple[str, ...] = (),
) -> RolloutConfig:  # fmt: skip
    """The rollout of one trainer config. arguments: its fields by name."""
    draft = Draft(framework, source.path, parts=parts)
    files = _FILES.get(trainer, _OTHERS)
    checkout = files.checkout(source)
    written_mode = known(arguments.get("vllm_mode"))
    in_question = _of_grpo(trainer, arguments)
    told = releases(in_question, vllm, written_mode == "colocate", BORN[trainer],
                    here=release_here(source, TRL, checkout))  # fmt: skip
    collect_sampling(draft, arguments, trainer, told)
    collect_facts(draft, arguments, trainer, told)
    draft.list_flags(arguments, *OPTIONS)
    draft.list_flags({name: arguments[name] for name in OBJECTIVE if name in arguments}, *OBJECTIVE)
    model = arguments.get("model_name_or_path") or arguments.get("model")
    _objective(draft, arguments, trainer, told)
    draft.refused_pin = told.refused_pin
    if not told.impossible:
        draft.releases = FrameworkReleases(told.oldest, told.newest, told.lower, told.upper)
    _gone_fields(draft, in_question, told)
    if told.importing is not None and told.oldest > told.importing:
        draft.not_seen.append(
            f"the TRL release: taken is {told}; those from {told.importing} on import this vLLM as well"
        )
    if told.impossible:
        draft.not_seen.append(f"{told}: what is said of the trainer is said of the later release")
    mode = engine_mode(trainer, arguments, told)
    _connection(draft, arguments, mode)
    if mode == "colocate":
        _colocated(draft, arguments, trainer, told)
        hold_against(draft, files, checkout, vllm)
        return draft.done(model=model, offline=True, place=place, write=write)
    if mode == "own device":
        _own_device(draft, arguments)
        return draft.done(model=model, offline=True, place=place, write=write)
    _not_its_own(draft, arguments, told, mode)
    hold_against(draft, replace(files, engine=()), checkout, vllm)
    reason = _elsewhere(mode, told)
    said = f"every engine argument: {reason}"
    draft.not_seen.append(said)
    config = draft.done(model=model, place=place, write=write)
    return replace(config, engine=Elsewhere(reason, {**_server_logprobs(mode, told), **draft.engine}, said))


def _objective(draft: Draft, arguments: Mapping[str, Node], trainer: str, told: Releases) -> None:
    """Defaults of GRPOConfig that decide the objective, or where the engine is, and that a later release moved."""
    for field, (before, release, later) in _MOVED.items() if trainer == "GRPO" else ():
        if is_said(arguments.get(field)):
            continue
        reason = f"{field} is not written: TRL's default is {before} before {release}, {later} since"
        value = moved_default(told.since(release), before, later, reason)
        draft.options.by_code(field, value, f"TRL's default; {later} since {release}")


def _of_grpo(trainer: str, arguments: Mapping[str, Node]) -> Mapping[str, Node]:
    """The fields that come and go with GRPOConfig: RLOOConfig kept one a release longer, other classes are apart."""
    if trainer in {"OnlineDPO", "GOLD"}:
        return {}
    return {name: node for name, node in arguments.items() if trainer != "RLOO" or name != "max_prompt_length"}


def _gone_fields(draft: Draft, arguments: Mapping[str, Node], told: Releases) -> None:
    """Fields at which the parser stops. Those of the engine are told with it."""
    for field, node in arguments.items():
        if told.past(field) and field not in COLOCATED and field not in OWN_DEVICE:
            draft.lose(field, node, Loss.REFUSED, _gone(field, told), certain=told.past_for_certain(field))


def _gone(field: str, told: Releases) -> str:
    """Why a field that is past stops the start."""
    oldest = told.importing if told.past_for_certain(field) and told.importing else told.oldest
    who = f"TRL {oldest} or later, which this vLLM needs," if told.impossible else str(told)
    return f"{who} has no {field} any more, and its parser stops there"


def engine_mode(trainer: str, arguments: Mapping[str, Node], told: Releases) -> str | Unknown:
    """`colocate`, `server`, `own device` (TRL up to 0.15), or Unknown."""
    node = arguments.get("vllm_mode")
    if trainer == "AsyncGRPO":
        return "server"
    if is_said(node):
        return node.value if isinstance(node.value, str | Unknown) else Unknown(f"vllm_mode is {node.value!r}")
    if trainer == "OnlineDPO" and not any(name.startswith("vllm_") and name != "vllm_model_impl" for name in arguments):
        return Unknown("vllm_mode is not written: OnlineDPOTrainer builds its own engine before 0.23")
    return _default_mode(told)


def _default_mode(told: Releases) -> str | Unknown:
    """What a config without `vllm_mode` means."""
    if told.since("1.0"):
        return "colocate"
    if told.since("0.16") is False:
        return "own device"
    if told.since("1.0") is False and told.since("0.16"):
        return "server"
    modes = [word for word, possible in (
        ("an engine on a GPU of its own before TRL 0.16", told.since("0.16") is not True),
        ("server before 1.0", True),
        ("colocate from 1.0 on", told.since("1.0") is None),
    ) if possible]  # fmt: skip
    return Unknown(f"vllm_mode is not written and the TRL release is not known: {', '.join(modes)}")


def _colocated(draft: Draft, arguments: Mapping[str, Node], trainer: str, told: Releases) -> None:
    for field, (name, default, first) in COLOCATED.items():
        node = arguments.get(field)
        if is_said(node):
            draft.engine.by_file(name, node)
        elif default is not None and told.since(first) is not False:
            value = _SHARES.get(trainer, default) if name == "gpu_memory_utilization" else default
            draft.engine.by_code(name, value, f"TRL's default of {field}")
    draft.engine.by_code("distributed_executor_backend", "external_launcher", f"literal ({_LITERAL})")
    if told.since("0.19") is not False:
        draft.engine.by_code("max_num_batched_tokens", 4096, f"literal ({_LITERAL})")
    draft.engine.by_code(
        "seed", 0, f"process index // tensor parallel size: 0 for the first engine, 1 for the next ({_LITERAL})"
    )
    draft.engine.by_code("max_num_seqs", _sequences(arguments, trainer), f"computed ({_LITERAL})")
    draft.trains("seeds_replicas", True, f"seeded with process index // tensor parallel size ({_LITERAL})")
    for field, name in OWN_DEVICE.items():
        node = arguments.get(field)
        if is_said(node) and told.past(field):
            draft.lose(name, node, Loss.REFUSED, _gone(field, told), certain=told.past_for_certain(field))
        elif is_said(node):
            draft.lose(name, node, Loss.UNKNOWN_KEY, f"TRL with vllm_mode has no {field} any more")
    logprobs_mode = _colocated_logprobs(trainer, told)
    if logprobs_mode is not None:
        draft.engine["logprobs_mode"] = logprobs_mode


def _colocated_logprobs(trainer: str, told: Releases) -> Setting | None:
    """`processed_logprobs` is a literal of GRPOTrainer since 0.24 (#4163) and of RLOOTrainer since 0.28."""
    if trainer not in {"GRPO", "RLOO"}:
        return None
    first = "0.24" if trainer == "GRPO" else "0.28"
    since = told.since(first)
    if since is False:
        return None
    if since is None:
        reason = f"TRL {first} and later pass processed_logprobs, earlier releases nothing; this is {told}"
        return by_code("logprobs_mode", Unknown(reason), reason)
    return by_code("logprobs_mode", "processed_logprobs", f"literal since TRL {first}; {told} ({_LITERAL})")


def _server_logprobs(mode: Any, told: Releases) -> dict[str, Setting]:
    """Until 1.7 only `trl vllm-serve` could be the server: nothing before 0.27, processed from there on (#4873)."""
    if mode != "server":
        return {}
    if told.since("0.27") is False:
        note = f"`trl vllm-serve` passes no logprobs_mode before 0.27; this is {told}"
        return {"logprobs_mode": by_code("logprobs_mode", None, note)}
    if told.since("0.27") and told.since("1.8") is False:
        note = f"`trl vllm-serve` since 0.27; this is {told} (TRL 0.27.1 scripts/vllm_serve.py:347)"
        return {"logprobs_mode": by_code("logprobs_mode", "processed_logprobs", note)}
    reason = (
        "the server decides: `trl vllm-serve` passes processed_logprobs since TRL 0.27 and nothing before, "
        f"`vllm serve` what its own command line says; this is {told}"
    )
    return {"logprobs_mode": by_code("logprobs_mode", Unknown(reason), reason)}


def _sequences(arguments: Mapping[str, Node], trainer: str) -> Any:
    """per_device_train_batch_size * tensor parallel size * steps_per_generation (gradient accumulation if unset)."""
    steps = arguments.get("steps_per_generation")
    if not is_said(steps):
        steps = arguments.get("gradient_accumulation_steps")
    nodes = [(arguments.get("per_device_train_batch_size"), 8), (arguments.get("vllm_tensor_parallel_size"), 1)]
    if trainer != "OnlineDPO":
        nodes.append((steps, 1))
    sizes = [default if node is None else known(node) for node, default in nodes]
    if not all(isinstance(size, int) for size in sizes):
        return Unknown("a factor of batch size * tensor parallel size * steps per generation is not known")
    product = 1
    for size in sizes:
        product *= size
    return product


def _own_device(draft: Draft, arguments: Mapping[str, Node]) -> None:
    """TRL 0.14 and 0.15: `LLM(...)` on a GPU of its own, prefix cache on (0.15.2 trainer/grpo_trainer.py:404)."""
    note = "TRL 0.15.2 trainer/grpo_trainer.py:404"
    for field, name in {**OWN_DEVICE, "vllm_gpu_memory_utilization": "gpu_memory_utilization"}.items():
        node = arguments.get(field)
        if is_said(node):
            draft.engine.by_file(name, node)
    draft.engine.unless_set("gpu_memory_utilization", 0.9, f"TRL's default ({note})")
    if "enable_prefix_caching" not in draft.engine:
        on = by_code("enable_prefix_caching", True, f"literal in 0.15, not passed in 0.14 ({note})")
        draft.engine["enable_prefix_caching"] = replace(on, value=Unknown(on.note))


def _not_its_own(draft: Draft, arguments: Mapping[str, Node], told: Releases, mode: str | Unknown) -> None:
    """Engine fields that a trainer in server mode does not use; where it may be colocated, it may use them."""
    fields = {field: name for field, (name, _, _) in COLOCATED.items()} | dict(OWN_DEVICE)
    for field, name in fields.items():
        node = arguments.get(field)
        if not is_said(node):
            continue
        if told.past(field):
            draft.lose(name, node, Loss.REFUSED, _gone(field, told), certain=told.past_for_certain(field))
        elif isinstance(mode, Unknown) and field in COLOCATED and told.since("1.0") is not False:
            reason = f"it reaches the engine in colocate mode only: {mode.reason}"
            draft.engine.by_file(name, node, Unknown(reason), reason)
        elif told.since("0.16"):
            reason = "in server mode the engine is not built by the trainer: write it on the server's command line"
            draft.lose(name, node, Loss.NOT_PASSED, reason)
        else:
            reason = f"{field} reaches the engine up to TRL 0.15 and is ignored later; this is {told}"
            draft.engine.by_file(name, node, Unknown(reason), reason)


def _connection(draft: Draft, arguments: Mapping[str, Node], mode: str | Unknown) -> None:
    found = [name for name in CONNECTION if name in arguments]
    if found:
        how = f"in {mode} mode" if isinstance(mode, str) else mode.reason
        draft.not_seen.append(f"{', '.join(found)}: where the engine runs ({how}), no setting of it")
    handled = {*CONNECTION, *COLOCATED, *OWN_DEVICE, "vllm_guided_decoding_regex", "vllm_structured_outputs_regex"}
    other = [
        name for name in arguments
        if name.startswith("vllm_") and name not in handled and not name.startswith("vllm_importance_sampling_")
    ]  # fmt: skip
    if other:
        draft.not_seen.append(f"{', '.join(other)}: no vLLM setting of any TRL release read here")


def _elsewhere(mode: str | Unknown, told: Releases) -> str:
    if isinstance(mode, Unknown):
        return mode.reason
    by_hand = " or `vllm serve`" if told.since("1.8") is not False else ""
    return f"the engine is a server that another command starts (`trl vllm-serve`{by_hand}); inspect that command"
