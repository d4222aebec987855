"""How an argument is spelt in a dialect, and the small things that every kind of edit needs."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from rlaudit.settings.place import Edit

# Returns (key or flag, value as text) of an argument; None if the dialect has no such argument.
Spell = Callable[[str, Any], "tuple[str, str] | None"]
Write = Callable[[str, Any], "tuple[Edit, ...] | None"]
_LINE_END = re.compile(r"\r?\n|$")


def apply(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with edits of one file carried out."""
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.replacement + text[edit.end :]
    return text


def scalar_text(value: Any) -> str:
    """Return a value as YAML, TOML and JSON all read it: true, 12, 0.5, "text"; collections as JSON."""
    if isinstance(value, str):
        return value if re.fullmatch(r"[A-Za-z_][\w./-]*", value) and not is_word(value) else json.dumps(value)
    return json.dumps(value)


def is_word(text: str) -> bool:
    """Return whether YAML would read a bare text as something else than text."""
    return text.lower() in {"true", "false", "null", "none", "yes", "no", "on", "off", "y", "n", "inf", "nan"}


def newline(text: str) -> str:
    """Return the line end that the file uses."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def line_end(text: str, at: int) -> int:
    """Return the end of the line that a position is in, before its \\n or \\r\\n."""
    match = _LINE_END.search(text, at)
    return match.start() if match else len(text)
