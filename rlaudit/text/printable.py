"""Text of files on its way to a terminal or a CI log.

What could move the cursor, hide other text or give the CI an order is shown as its number.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any

from rlaudit.secrets import field_names

# Control characters, what is not seen (zero width, fillers, tags), marks that end a line or reverse the direction of
# text, and halves of characters from undecodable file names. Selectors of an emoji's form stay.
# Source: Default_Ignorable_Code_Point and Bidi_Control of Unicode's DerivedCoreProperties.txt and PropList.txt.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# GitHub's runner takes every line of a log that begins so, blanks before it or not, for a command.
_COMMAND = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def printable(data: Any) -> Any:
    """Return the same data with every string safe to print."""
    return with_texts(data, lambda text: _UNPRINTABLE.sub(_number, text))


def with_texts(data: Any, change: Callable[[str], str]) -> Any:
    """Return the same data, in the same records, with every text changed; a member of an Enum is no text.

    What holds no text that changes is returned itself: a report of many files has a hundred thousand parts.
    """
    if isinstance(data, str):
        return data if isinstance(data, Enum) else change(data)
    if isinstance(data, dict):
        return {with_texts(key, change): with_texts(value, change) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [with_texts(part, change) for part in data]
    changed = {
        name: new for name in field_names(data) if (new := with_texts(old := getattr(data, name), change)) is not old
    }
    return replace(data, **changed) if changed else data


def no_commands(text: str) -> str:
    """Return the text with no line that a CI would carry out."""
    return _COMMAND.sub(r"\1\\x3a", text)


def one_line(text: str) -> str:
    """Return the text with every run of white space as one blank."""
    return " ".join(text.split())


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
