"""open-instruct: `open_instruct/grpo_fast.py` with `--vllm_*` options, in shell or in beaker's YAML."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from packaging.version import Version

from rlaudit.configs.arguments import by_name
from rlaudit.configs.command_lines import command_lines, line_writer, untold
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.open_instruct.engine import ENGINE, SWITCHES, collect, leave_open
from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_command import Command

_SCRIPTS = ("open_instruct/grpo_fast.py", "open_instruct/grpo.py", "open_instruct.grpo_fast", "open_instruct.grpo")
_MARK = "open_instruct"
FILES = FrameworkFiles(
    "open_instruct",
    engine=("open_instruct/vllm_utils.py", "open_instruct/vllm_utils3.py"),
    options=tuple(f"open_instruct/{name}.py" for name in ("data_loader", "grpo_utils", "grpo_fast")),
    prefix="vllm_",
)


def recognise(source: Source) -> bool:
    """Whether a command starts open-instruct's GRPO trainer."""
    return any(script in source.text for script in _SCRIPTS) and any(True for _ in _lines(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One config per trainer that the file starts."""
    return tuple(_config(source, *found, vllm) for found in _lines(source))


def _lines(source: Source) -> Iterator[tuple[Command, int]]:
    for command in command_lines(source, _MARK):
        for at, word in enumerate(command.words):
            if isinstance(word.value, str) and word.value.endswith(_SCRIPTS):
                yield command, at + 1
                break


def _config(source: Source, command: Command, at: int, vllm: Version) -> RolloutConfig:
    arguments: Mapping[str, Node] = by_name(flags(command.words, at))
    draft = Draft("open_instruct", source.path, bare=True)
    collect(draft, arguments, vllm)
    checkout = FILES.checkout(source)
    hold_against(draft, FILES, checkout, vllm)
    leave_open(draft, arguments, _elsewhere(command, at))
    draft.not_seen += untold(command, at)
    for name, node in command.variables.items():
        if name.startswith("VLLM_") and name not in draft.environment:
            draft.environment.by_file(name, node)
    for name, node in _launcher(command, at):
        draft.environment.by_file(name, node)
    return draft.done(
        model=arguments.get("model_name_or_path"), offline=False, place=command.place,
        write=line_writer(command, at, partial(_spell, checkout), source),
    )  # fmt: skip


def _launcher(command: Command, at: int) -> Iterator[tuple[str, Node]]:
    """`mason.py --env NAME=value ... -- command` of open-instruct: the job's own variables."""
    for flag in flags(command.words[:at]):
        for word in (flag.value, *flag.more) if flag.name == "env" else ():
            if word is not None and isinstance(word.value, str) and word.value.startswith("VLLM_"):
                name, equals, value = word.value.partition("=")
                if equals:
                    yield name, Node(value, word.place, flag.place, word.text)


def _elsewhere(command: Command, at: int) -> str:
    """What holds the run's options in place of the command: a config file, or a variable (`$TRAINING_ARGS`). "" where
    nothing does; `"$@"` holds what somebody adds to them.
    """
    for flag in flags(command.words, at):
        word = flag.value
        if flag.name or word is None:
            continue
        if isinstance(word.value, Unknown) and not re.search(r"\$\{?[@*]", word.text):
            return word.text.strip("\"'")
        if isinstance(word.value, str) and word.value.endswith((".yaml", ".yml", ".json")):
            return word.value
    return ""


def _spell(checkout: Checkout | None, name: str, value: Any) -> tuple[str, str] | None:
    """An option for an argument. None also where the checkout has no such option: its parser would stop there."""
    options = {argument: option for option, (argument, _) in ENGINE.items()}
    option = options.get(name)
    if option is None or isinstance(value, dict | list):
        return None
    if checkout is not None and not checkout.says(rf"\b{option}\b"):
        return None
    if option in SWITCHES:
        return f"--{option}", "" if value is True else "False"
    return f"--{option}", str(value)


DIALECT = Dialect("open_instruct", "open-instruct", 10, recognise, read)
