"""Edits of Python calls: a keyword's value in place, or a new keyword at the end. Never one that does not parse."""

import re
from typing import TYPE_CHECKING, Any

from rlaudit.configs.syntax.edit import Edit
from rlaudit.configs.syntax.spelling import Spell, Write, apply, line_end, newline

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_text import Call


def call_writer(call: "Call", spell: Spell, text: str) -> Write:
    """Writes keywords of a Python call. spell: (keyword, value as Python)."""
    return lambda name, value: _checked_python(_call_edits(call, spell, text, name, value), text)


def _call_edits(call: "Call", spell: Spell, text: str, name: str, value: Any) -> tuple[Edit, ...] | None:  # noqa: PLR0911 - one for each way that a call is written
    spelt = spell(name, value)
    if spelt is None:
        return None
    key, wanted = spelt
    path = call.place.path
    old = call.arguments.get(key)
    if old is not None:
        start, end = old.place.start, old.place.end
        return () if text[start:end] == wanted else (Edit(path, start, end, wanted),)
    closing = call.place.end - 1
    inside = [
        node.place.end
        for node in (*call.arguments.values(), *call.positional)
        if call.place.start <= node.place.start < call.place.end
    ]
    if text[closing : closing + 1] != ")" or (call.open and not inside):
        return None
    if not inside:
        return (Edit(path, closing, closing, f"{key}={wanted}"),)
    tail = _after_arguments(text, max(inside), closing)
    if tail is None:
        return None
    comma, last_line = tail
    if "\n" not in text[max(inside) : closing]:
        return (
            (Edit(path, closing, closing, f"{' ' if comma else ', '}{key}={wanted}"),)
            if not last_line.strip(" ,")
            else None
        )
    begin = text.rfind("\n", 0, max(inside)) + 1
    indent = (re.compile(r"[ \t]*").match(text, begin) or [""])[0]
    at = line_end(text, max(inside))
    edits = [] if comma else [Edit(path, max(inside), max(inside), ",")]
    return (*edits, Edit(path, at, at, f"{newline(text)}{indent}{key}={wanted},"))


def _after_arguments(text: str, begin: int, end: int) -> tuple[bool, str] | None:
    """Whether a comma follows the last argument, and the code after it; None where more than that follows."""
    code = re.sub(r"#[^\n]*", "", text[begin:end])
    return (code.strip() == ",", code) if code.strip() in {"", ","} else None


def _checked_python(edits: tuple[Edit, ...] | None, text: str) -> tuple[Edit, ...] | None:
    if not edits:
        return edits
    from rlaudit.configs.syntax.python_text import UnreadablePython, parse

    try:
        parse(apply(text, edits))
    except UnreadablePython:
        return None
    return edits
