"""Hydra overrides of a command line as a tree: `trainer.nnodes=2` is {trainer: {nnodes: 2}}.

`+key` and `++key` set like `key`; `~key` removes. The last one wins, as in Hydra. Scripts inside job
descriptions (`run: |`) and commands in YAML lists are read as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rlaudit.configs.merging import merged, nested, reread, without
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.settings.place import Place

if TYPE_CHECKING:
    from rlaudit.configs.syntax.flags import Flag
    from rlaudit.configs.syntax.shell_command import Command


@dataclass(frozen=True, eq=False)
class Overridden:
    """One command that overrides a Hydra config, and the tree that its overrides set."""

    command: "Command"
    root: Node


# Called when a file is recognised and when it is read.
@lru_cache(maxsize=8)
def overridden(source: Source, prefix: str) -> tuple[Overridden, ...]:
    """Return the training commands of the file's scripts with an override of a key that begins with `prefix`."""
    if prefix not in source.text:
        return ()
    # Reading shell costs start-up time that a YAML file should not pay.
    from rlaudit.configs.command_lines import command_lines
    from rlaudit.configs.program import trains
    from rlaudit.configs.syntax.flags import overrides

    commands = []
    for command in filter(trains, command_lines(source, prefix)):
        command_overrides = overrides(command.words)
        if any(flag.name.startswith(prefix) for flag in command_overrides):
            commands.append(Overridden(command, tree_of(command_overrides, command.place)))
    return tuple(commands)


def untold(command: "Command") -> tuple[str, ...]:
    """Return what a command leaves open, in sentences: words that may hold overrides, and the defaults taken."""
    from rlaudit.configs.syntax.flags import overrides_anything
    from rlaudit.configs.syntax.shell_command import further_words

    words = command.words
    programs = (
        at for at in range(1, len(words)) if words[at - 1].value == "-m" or str(words[at].value).endswith(".py")
    )
    open_words = [word.text for word in words[next(programs, 0) + 1 :] if overrides_anything(word)]
    return (*(further_words(text, "overrides") for text in dict.fromkeys(open_words)), *command.assumed)


def tree_of(overrides: "Sequence[Flag]", place: Place) -> Node:
    """Return the overrides of one command as a mapping; `place` is the command's."""
    return replace(overriding(Node({}, place), overrides), place=place)


def overriding(root: Node, overrides: "Sequence[Flag]") -> Node:
    """Return a config with the overrides of a command on top, one after the other."""
    for override in overrides:
        path = tuple(part for part in override.name.split(".") if part)
        if not path:
            continue
        if override.operator == "~":
            root = without(root, *path)
        elif override.value is not None:
            place_of_value = replace(override.value.place, setting=override.name)
            leaf = _node(override.value.value, place_of_value, override.place, override.value.text)
            root = _with(root, path, leaf)
    return reread(root)


def _with(root: Node, path: tuple[str, ...], leaf: Node) -> Node:
    """Return the tree with a value at a path, whose numbers lead into lists."""
    key = path[0] if path else ""
    if isinstance(root.value, tuple) and key.isdecimal() and int(key) < len(root.value):
        elements = list(root.value)
        elements[int(key)] = _with(elements[int(key)], path[1:], leaf)
        return replace(root, value=tuple(elements))
    if isinstance(root.value, dict) and key in root.value:
        return replace(root, value={**root.value, key: _with(root.value[key], path[1:], leaf)})
    return merged(root, nested(path, leaf))


def _node(value: Any, place: Place, key: Place | None, text: str) -> Node:
    """Return Python data as nodes, all at the same place: that of a JSON value on the command line."""
    if isinstance(value, dict):
        return Node({str(name): _node(child, place, key, "") for name, child in value.items()}, place, key, text)
    if isinstance(value, list | tuple):
        return Node(tuple(_node(child, place, key, "") for child in value), place, key, text)
    return Node(value, place, key, text)
