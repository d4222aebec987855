"""ms-swift: `swift rlhf --rlhf_type grpo`, its server `swift rollout`, and the same arguments in YAML or JSON."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from packaging.version import Version

from rlaudit.configs.arguments import by_name, truth
from rlaudit.configs.command_lines import command_lines, line_writer, untold
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.ms_swift.engine import ENGINE, swift_config
from rlaudit.configs.draft import by_file
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.configs.syntax.yaml_edits import yaml_writer

_MARKS = ("rlhf", "rollout")
_GENERATES = ("grpo", "gkd", "ppo")
_PROGRAMS = {"swift", "megatron"}


def recognise(source: Source) -> bool:
    """Whether ms-swift trains with vLLM rollouts here, or starts its rollout server."""
    text = source.text
    if "swift" not in text and "rlhf_type" not in text:
        return False
    return _is_trainer(mapping_of(source)) or any(True for _ in _lines(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One config per trainer and per server."""
    root = mapping_of(source)
    if root is not None and _is_trainer(root):
        write = yaml_writer(root, _spell(""), source.text)
        return (swift_config(source, "rlhf", dict(root.items()), vllm, root.place, write),)
    return tuple(_of_line(source, *found, vllm) for found in _lines(source))


def _is_trainer(root: Node | None) -> bool:
    if root is None or root.get("rlhf_type") is None:
        return False
    kind = root.get("rlhf_type")
    return kind is not None and kind.value in _GENERATES and truth(root.get("use_vllm"), False) is not False


def _lines(source: Source) -> Iterator[tuple[Command, int, str]]:
    """Commands of interest, the index of their first option, and `rlhf` or `rollout`."""
    for command in command_lines(source, *_MARKS):
        for at, word in enumerate(command.words):
            kind = _entry(command, at)
            if kind is None:
                continue
            arguments, _ = _arguments(source, command, at + 1)
            if kind == "rollout" or _is_trainer(Node(arguments, word.place)):
                yield command, at + 1, kind
            break


def _entry(command: Command, at: int) -> str | None:
    """`swift rlhf`, `megatron rollout`, `swift/cli/rlhf.py`, `-m swift.cli.rollout`."""
    word = command.words[at].value
    before = command.words[at - 1].value if at else ""
    if not isinstance(word, str):
        return None
    if word in {"rlhf", "rollout"} and isinstance(before, str) and PurePath(before).name in _PROGRAMS:
        return word
    for kind in ("rlhf", "rollout"):
        if word.endswith((f"swift/cli/{kind}.py", f"swift/cli/_megatron/{kind}.py")) or word == f"swift.cli.{kind}":
            return kind
    return None


def _arguments(source: Source, command: Command, at: int) -> tuple[dict[str, Node], tuple[str, ...]]:
    """The options of a command over those of the file that `--config` names, and that file's path."""
    arguments = by_name(flags(command.words, at))
    named = arguments.pop("config", None)
    beside = source.named_file(named)
    root = mapping_of(beside) if beside is not None else None
    if beside is None or root is None:
        return arguments, ()
    return {**dict(root.items()), **arguments}, (beside.path,)


def _of_line(source: Source, command: Command, at: int, kind: str, vllm: Version) -> RolloutConfig:
    arguments, parts = _arguments(source, command, at)
    write = line_writer(command, at, _spell("--"), source)
    config = swift_config(source, kind, arguments, vllm, command.place, write, parts)
    environment = {name: by_file(name, node) for name, node in command.variables.items() if name.startswith("VLLM_")}
    not_seen = (*config.not_seen, *untold(command, at))
    return replace(config, environment={**config.environment, **environment}, not_seen=not_seen)


def _spell(dashes: str) -> Any:
    fields = {name: argument for argument, (name, _) in ENGINE.items()}
    fields["enable_prefix_caching"] = "vllm_enable_prefix_caching"

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        argument = fields.get(name)
        if argument is None or isinstance(value, dict | list):
            return None
        return dashes + argument, str(value).lower() if isinstance(value, bool) else str(value)

    return spell


DIALECT = Dialect("ms_swift", "ms-swift", 15, recognise, read)
