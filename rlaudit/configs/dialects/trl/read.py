"""TRL: GRPOConfig and its kin, in Python, in TrlParser's YAML, on command lines, and the `trl vllm-serve` server."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.arguments import by_name, truth
from rlaudit.configs.command_lines import command_lines, line_writer, untold
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.trl.engine import COLOCATED, trainer_config
from rlaudit.configs.dialects.trl.server import server_config
from rlaudit.configs.draft import by_file
from rlaudit.configs.elsewhere import as_written
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.program import TRAINING, trains, words_of
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.call_edits import call_writer
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.configs.syntax.yaml_edits import yaml_writer

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

CALLS: Mapping[str, str] = {
    "GRPOConfig": "GRPO",
    "RLOOConfig": "RLOO",
    "OnlineDPOConfig": "OnlineDPO",
    "NashMDConfig": "OnlineDPO",
    "XPOConfig": "OnlineDPO",
    "GOLDConfig": "GOLD",
    "AsyncGRPOConfig": "AsyncGRPO",
}
_TELLING = {
    "num_generations", "max_completion_length", "reward_funcs", "vllm_mode", "vllm_gpu_memory_utilization",
    "vllm_server_host", "vllm_server_base_url", "vllm_device", "max_new_tokens", "beta",
}  # fmt: skip
_OTHERS = {"rlhf_type", "actor_rollout_ref", "trl", "rl", "stage"}
# What tells a script that trains: one that evaluates has max_new_tokens as well, and none of a Trainer's arguments.
_TRAINS = (_TELLING - {"max_new_tokens", "beta"}) | {
    "per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "learning_rate", "max_steps",
    "config",
}  # fmt: skip
# Of TRL itself: the trainer is its own.
_SUBCOMMANDS = {"grpo", "rloo"}
_LAUNCHERS = {"accelerate", "torchrun", "python", "python3", "deepspeed", "trl"}
# Booleans that are true unless `--no_<name>` is said.
_ON = ("vllm_importance_sampling_correction", "bf16")


def recognise(source: Source) -> bool:
    """Whether the file configures a TRL trainer that generates with vLLM, or starts `trl vllm-serve`."""
    text = source.text
    if "vllm" not in text:
        return False
    if source.suffix == ".py":
        return "use_vllm" in text and any(f"{name}(" in text for name in CALLS) and bool(_python(source))
    if source.suffix in {".yaml", ".yml", ".json"} and _is_trainer(mapping_of(source)):
        return True
    return any(True for _ in _lines(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One config per trainer and per server that the file starts."""
    if source.suffix == ".py":
        trainers = (_of_call(source, call, vllm) for call in _python(source))
        servers = ((command, at) for command, at, kind in _lines(source) if kind == "serve")
        return (*(_of_server(source, command, at, vllm) for command, at in servers), *trainers)
    root = mapping_of(source)
    if root is not None and _is_trainer(root):
        arguments = dict(root.items())
        return (
            trainer_config(
                "trl", source, _trainer_of(arguments, ""), arguments, vllm, root.place,
                yaml_writer(root, _spell(arguments), source.text),
            ),
        )  # fmt: skip
    return tuple(_of_line(source, command, at, kind, vllm) for command, at, kind in _lines(source))


def _is_trainer(root: Node | None) -> bool:
    """A flat mapping with `use_vllm` on, as TrlParser reads it."""
    if root is None or not isinstance(root.value, dict) or _OTHERS & root.value.keys():
        return False
    return truth(root.get("use_vllm"), False) is not False and bool(_TELLING & root.value.keys())


def _python(source: Source) -> "tuple[Call, ...]":
    try:
        found = source.calls(CALLS)
    except (ValueError, RecursionError):
        return ()
    return tuple(
        call for call in found
        # Keywords that the file does not tell may hold use_vllm, which stands somewhere in it.
        if call.name in {"AsyncGRPOConfig"} or truth(call.arguments.get("use_vllm"), bool(call.open)) is not False
    )  # fmt: skip


def _of_call(source: Source, call: "Call", vllm: Version) -> RolloutConfig:
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.python_environment import python_environment

    arguments = dict(call.arguments)
    config = trainer_config(
        "trl", source, CALLS[call.name], arguments, vllm, call.place,
        call_writer(call, _spell(arguments, python=True), source.text),
    )  # fmt: skip
    if call.open:
        config = replace(
            config,
            engine=as_written(config.engine, call.name),
            sampling=as_written(config.sampling, call.name),
            not_seen=(*config.not_seen, f"further arguments of {call.name}: {call.open}"),
        )
    variables = python_environment(source, ("VLLM_",)) if config.offline else {}
    own = {name: by_file(name, node) for name, node in variables.items()}
    return replace(config, environment={**config.environment, **own})


def _lines(source: Source) -> Iterator[tuple[Command, int, str]]:
    """Commands of interest, the index of their first argument, and `serve` or a trainer's script or subcommand."""
    for command in command_lines(source, "vllm-serve", "vllm_serve", "use_vllm", "use-vllm", "trl ", "--config"):
        words = [word.value if isinstance(word.value, str) else "" for word in command.words]
        for at, word in enumerate(words):
            following = words[at + 1] if at + 1 < len(words) else ""
            if PurePath(word).name == "trl" and following == "vllm-serve":
                yield command, at + 2, "serve"
                break
            if word.endswith("vllm_serve.py") or word == "trl.scripts.vllm_serve":
                yield command, at + 1, "serve"
                break
            subcommand = PurePath(word).name == "trl" and following in _SUBCOMMANDS
            starts = subcommand or (_is_script(words, at) and _is_trainers(command, at))
            if starts and _asks_for_vllm(source, command, at + 1):
                yield command, at + 1, following if PurePath(word).name == "trl" else word
                break


def _asks_for_vllm(source: Source, command: Command, at: int) -> bool:
    """Whether the flag itself is there, and not false: other frameworks have options that begin with it. Or, where the
    command does not have it, whether the file that `--config` names is a trainer's that has.
    """
    given = by_name(flags(command.words, at))
    if "use_vllm" in given:
        return truth(given["use_vllm"], False) is not False
    beside = source.named_file(given.get("config"))
    return beside is not None and _is_trainer(mapping_of(beside))


def _is_script(words: list[str], at: int) -> bool:
    """A training script after a launcher, where nothing says that it is another framework's."""
    before = {PurePath(word).name for word in words[:at]}
    name = PurePath(words[at]).name
    after_module = at > 0 and words[at - 1] == "-m"
    if not (name.endswith(".py") or after_module) or not before & _LAUNCHERS:
        return False
    return not any("swift" in word or "--rlhf_type" in word for word in words)


def _is_trainers(command: Command, at: int) -> bool:
    """Whether a script's name or one of its options can be a TRL trainer's."""
    given = by_name(flags(command.words, at + 1))
    named = bool(words_of(str(command.words[at].value)) & TRAINING)
    return trains(command) and (named or bool(_TRAINS & given.keys()))


def _of_line(source: Source, command: Command, at: int, kind: str, vllm: Version) -> RolloutConfig:
    if kind == "serve":
        return _of_server(source, command, at, vllm)
    arguments = by_name(flags(command.words, at), _ON)
    parts: tuple[str, ...] = ()
    beside = source.named_file(arguments.get("config"))
    arguments.pop("config", None)
    root = mapping_of(beside) if beside is not None else None
    if beside is not None and root is not None:
        arguments = {**dict(root.items()), **arguments}
        parts = (beside.path,)
    config = trainer_config(
        "trl", source, _trainer_of(arguments, kind), arguments, vllm, command.place,
        line_writer(command, at, _spell(arguments, "--"), source), parts,
    )  # fmt: skip
    variables = {
        name: by_file(name, node) for name, node in command.variables.items() if name.startswith("VLLM_")
    }  # fmt: skip
    environment = {**config.environment, **variables} if config.offline else config.environment
    not_seen = [*config.not_seen, *untold(command, at)]
    if kind not in _SUBCOMMANDS:
        recorded = "`rlaudit record` writes down how its engine is built"
        not_seen.append(f"whether {PurePath(kind).name} trains with TRL's own trainer, as is taken here; {recorded}")
    return replace(config, environment=environment, not_seen=tuple(not_seen))


def _of_server(source: Source, command: Command, at: int, vllm: Version) -> RolloutConfig:
    return server_config("trl", source, command, at, by_name(flags(command.words, at), _ON), vllm)


def _trainer_of(arguments: Mapping[str, Node], script: str) -> str:
    """Which trainer reads flat keys: the script's name says it, or keys that only one has; GRPO shares most."""
    name = script.lower()
    if "rloo" in name or "normalize_advantages" in arguments:
        return "RLOO"
    if "online_dpo" in name or "online-dpo" in name or {"judge", "reward_model_path"} & arguments.keys():
        return "OnlineDPO"
    if "gold" in name and "lmbda" in arguments:
        return "GOLD"
    return "GRPO"


def _spell(arguments: Mapping[str, Node], dashes: str = "", python: bool = False) -> Any:
    """Only what TRL passes on can be written; everything else of the engine is fixed in its code."""
    fields = {name: field for field, (name, _, _) in COLOCATED.items()}

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        field = fields.get(name)
        mode = arguments.get("vllm_mode")
        if field is None or mode is None or mode.value != "colocate":
            return None
        if isinstance(value, bool):
            return dashes + field, str(value) if python else str(value).lower()
        if isinstance(value, str):
            return dashes + field, repr(value) if python else value
        return dashes + field, str(value)

    return spell


DIALECT = Dialect("trl", "TRL", 10, recognise, read)
