"""Arguments of a command line as typed nodes by name, so that a flag reads like the same key of a YAML file."""

import re
import shlex
from collections.abc import Iterable
from typing import Any

from rlaudit.configs.syntax.flags import Flag, typed
from rlaudit.configs.syntax.node import Node
from rlaudit.files.parse_json import parse_json
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

# Booleans of Hugging Face's argument parser.
_YES = {"true", "yes", "t", "y", "1"}
_NO = {"false", "no", "f", "n", "0"}


def by_name(flags: Iterable[Flag], *, negations: bool = False) -> dict[str, Node]:
    """Return each option's last value. A bare one is true; with negations a bare `--no_x` is `x` false."""
    nodes: dict[str, Node] = {}
    for flag in flags:
        if not flag.name:
            continue
        if flag.value is None or flag.doubtful:
            name = flag.name.removeprefix("no_") if negations else flag.name
            nodes[name] = flag.value or Node(name == flag.name, flag.place, flag.place)
        else:
            nodes[flag.name] = of_word(flag.value, flag.place)
    return nodes


def of_word(word: Node, key: Place | None = None) -> Node:
    """Return a word of a command line with the value that it spells: number, boolean, nothing, JSON, else itself."""
    value = typed(word.value) if isinstance(word.value, str) else word.value
    if isinstance(value, Unknown) and "{" in word.text:
        value = _partly_known(word.text, value)
    return Node(_tree(value, word.place), word.place, key or word.key, word.text)


def _partly_known(text: str, unknown: Unknown) -> Any:
    """Return a JSON mapping as a shell spells it, Unknown only in place of expansions; all of it if it is no JSON."""
    try:
        (word,) = shlex.split(text)
        value = parse_json(re.sub(r"(?<=[:,\[])(\s*)(\$\{?\w+\}?)(?=\s*[,\]}])", r'\1"\2"', word))
    except (ValueError, RecursionError):
        return unknown
    return _with_unknowns(value, unknown) if isinstance(value, dict) else unknown


def _with_unknowns(value: Any, unknown: Unknown) -> Any:
    """Return plain data with `unknown` for every text that holds an expansion."""
    if isinstance(value, dict):
        return {key: _with_unknowns(part, unknown) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_unknowns(part, unknown) for part in value]
    return unknown if isinstance(value, str) and re.search(r"[$`]", value) else value


def truth(node: Node | None, default: Any = None) -> Any:
    """Return True, False, or Unknown; `default` if the node is missing or null."""
    if node is None or node.value is None:
        return default
    if isinstance(node.value, bool | Unknown):
        return node.value
    word = str(node.value).strip().lower()
    if word in _YES or word in _NO:
        return word in _YES
    return Unknown(f"{node.text or node.value!r} is no boolean")


def _tree(value: Any, place: Place) -> Any:
    """Return plain data as the value of a node, every part of it at the place of the whole word."""
    if isinstance(value, dict):
        return {str(key): Node(_tree(part, place), place) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return tuple(Node(_tree(part, place), place) for part in value)
    return value
