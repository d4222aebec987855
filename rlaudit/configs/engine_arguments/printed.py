"""Python values as a log prints them: `{'a': 1, ...}`, `Namespace(a=1, ...)`, `model='x', dtype=torch.bfloat16, ...`.

Objects are printed in ways that Python does not read back, so only the commas at the outermost level are searched.
"""

import re
from collections.abc import Iterator
from typing import Any

from rlaudit.unknown import Unknown

LONGEST_LITERAL = 20_000
_PAIR = re.compile(r"\s*(?:'([\w.]+)'\s*:|([A-Za-z_]\w*)\s*=)\s*")
_MEANT = re.compile(r"[\"'()\[\]{},\\]")
_WORD = re.compile(r"[\w./:@+-]+")
_ENUM = re.compile(r"<(\w{1,80})\.(\w{1,80}): ([^<>]{1,200})>")
_DTYPE = re.compile(r"(?<![\w'\".])torch\.(\w{1,40})")


def pairs(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield name and value span of every pair in text[start:end], up to a closing bracket without an opening one."""
    at = start
    while at < end:
        match = _PAIR.match(text, at, end)
        if match is None:
            return
        stop, closed = _value_end(text, match.end(), end)
        yield match.group(1) or match.group(2), match.end(), match.end() + len(text[match.end() : stop].rstrip())
        if closed:
            return
        at = stop + 1


def _value_end(text: str, at: int, end: int) -> tuple[int, bool]:
    """Return the end of a value, and whether it is the last one."""
    depth, quote = 0, ""
    while True:
        match = _MEANT.search(text, at, end)
        if match is None:
            return end, True
        character, at = match.group(), match.end()
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            # An apostrophe inside a word is printed by some objects; a quote begins a value.
            quote = character if not text[match.start() - 1 : match.start()].isalnum() else ""
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                return match.start(), True
            depth -= 1
        elif character == "," and depth == 0:
            return match.start(), False


def printed_value(text: str) -> Any:
    """Return a printed value as data: literals, torch dtypes, enum members; Unknown for any other object."""
    stripped = text.strip()
    if stripped.startswith("torch."):
        return stripped.removeprefix("torch.")
    if len(stripped) <= LONGEST_LITERAL:
        import ast

        try:
            return _plain(ast.literal_eval(_DTYPE.sub(r"'\1'", _ENUM.sub(_member, stripped))))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            pass
    if _WORD.fullmatch(stripped):
        return stripped
    return Unknown(f"it is printed as {stripped[:40]}")


def _member(match: re.Match[str]) -> str:
    """Return the value of an enum member, or its name if vLLM's flag takes the name (`cudagraph_mode`)."""
    kind, name, value = match.groups()
    return repr(name) if kind == "CUDAGraphMode" else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)
