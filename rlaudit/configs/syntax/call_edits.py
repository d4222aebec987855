"""Edits of Python calls and dictionaries: a value in place, or a new keyword or key at the end.

Never one that does not parse.
"""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlaudit.configs.syntax.spelling import Spell, Write, apply, line_end, newline
from rlaudit.settings.place import Edit

if TYPE_CHECKING:
    from rlaudit.configs.syntax.node import Node
    from rlaudit.configs.syntax.python_calls import Call
    from rlaudit.settings.place import Place


def call_writer(call: "Call", spell: Spell, text: str) -> Write:
    """Return a function that writes keywords of a Python call. spell: (keyword, value as Python)."""
    values = (*call.arguments.values(), *call.positional)

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        return _checked_python(
            _edits(call.place, call.arguments, values, bool(call.open), spell, text, name, value), text
        )

    return write


def python_mapping_writer(mapping: "Node", spell: Spell, text: str) -> Write:
    """Return a function that writes keys of a dictionary display or of a `dict(...)`. spell: (key, value as Python)."""

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        values = tuple(mapping.value.values())
        return _checked_python(_edits(mapping.place, mapping.value, values, False, spell, text, name, value), text)

    return write


def _edits(  # noqa: PLR0911 - one for each way that a call is written
    place: "Place", arguments: "Mapping[str, Node]", values: "tuple[Node, ...]", is_open: bool, spell: Spell, text: str,
    name: str, value: Any,
) -> tuple[Edit, ...] | None:  # fmt: skip
    spelling = spell(name, value)
    if spelling is None:
        return None
    key, new_text = spelling
    path = place.path
    old = arguments.get(key)
    if old is not None:
        start, end = old.place.start, old.place.end
        return () if text[start:end] == new_text else (Edit(path, start, end, new_text),)
    closing = place.end - 1
    inside = [node.place.end for node in values if place.start <= node.place.start < place.end]
    bracket = text[closing : closing + 1]
    if bracket not in {")", "}"} or (is_open and not inside):
        return None
    entry = f"{key}={new_text}" if bracket == ")" else f"{json.dumps(key)}: {new_text}"
    if not inside:
        return (Edit(path, closing, closing, entry),)
    tail = _after_arguments(text, max(inside), closing)
    if tail is None:
        return None
    comma, last_line = tail
    if "\n" not in text[max(inside) : closing]:
        return (
            (Edit(path, closing, closing, f"{' ' if comma else ', '}{entry}"),) if not last_line.strip(" ,") else None
        )
    begin = text.rfind("\n", 0, max(inside)) + 1
    indent = (re.compile(r"[ \t]*").match(text, begin) or [""])[0]
    at = line_end(text, max(inside))
    edits = [] if comma else [Edit(path, max(inside), max(inside), ",")]
    return (*edits, Edit(path, at, at, f"{newline(text)}{indent}{entry},"))


def _after_arguments(text: str, begin: int, end: int) -> tuple[bool, str] | None:
    """Return whether a comma follows the last argument, and the code after it; None if more than that follows."""
    code = re.sub(r"#[^\n]*", "", text[begin:end])
    return (code.strip() == ",", code) if code.strip() in {"", ","} else None


def _checked_python(edits: tuple[Edit, ...] | None, text: str) -> tuple[Edit, ...] | None:
    if not edits:
        return edits
    from rlaudit.configs.syntax.python_text import parse
    from rlaudit.configs.syntax.unreadable import UnreadableText

    try:
        parse(apply(text, edits))
    except UnreadableText:
        return None
    return edits
