"""Words of a command that are no plain `--option value`: intervals, a launcher's variables, files and `$OPTIONS`."""

import re
from collections.abc import Iterable
from dataclasses import replace

from rlaudit.configs.syntax.flags import Flag, flags
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_command import Command

# What a user adds to the command.
_ADDED = re.compile(r"\$\{?[@*]")
_FILES = (".yaml", ".yml", ".json")


def whole(flag: Flag, intervals: frozenset[str]) -> Flag:
    """Return an option with all of its words as one text if it is an interval: `--threshold 0.5 5.0`."""
    if flag.value is None or not flag.more or flag.name not in intervals:
        return flag
    text = " ".join(word.text for word in (flag.value, *flag.more))
    return replace(flag, value=replace(flag.value, value=text, text=text))


def hold_options(options: Iterable[Flag]) -> bool:
    """Return whether words in place of options hold some: a config file, or a variable. `"$@"` only adds to them."""
    for flag in options:
        if flag.name or flag.value is None:
            continue
        word = flag.value
        if isinstance(word.value, Unknown) and not _ADDED.search(word.text):
            return True
        if isinstance(word.value, str) and word.value.endswith(_FILES):
            return True
    return False


def launched(command: Command, at: int, option: str) -> Command:
    """Return a command with the variables that its launcher sets: `mason --env NAME=value ... -- program`."""
    variables = dict(command.variables)
    for flag in flags(command.words[:at]):
        for word in (flag.value, *flag.more) if flag.name == option else ():
            if word is not None and isinstance(word.value, str) and "=" in word.value:
                name, _, value = word.value.partition("=")
                variables[name] = Node(value, word.place, flag.place, word.text)
    return replace(command, variables=variables)
