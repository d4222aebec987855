"""Text that is not of its language, or larger or deeper than a config ever is."""

import re

_BRACKETS = re.compile(r"[\[\]{}]")


class UnreadableText(ValueError):
    """`line` is 1-based, 0 if unknown."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def refuse_depth(text: str, deepest: int) -> None:
    """Raise UnreadableText for brackets that would overflow a parser's stack; those in strings count as well."""
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth = depth + 1 if bracket.group() in "[{" else max(0, depth - 1)
        if depth > deepest:
            raise UnreadableText(f"nested deeper than {deepest} levels", text.count("\n", 0, bracket.start()) + 1)


def refuse_length(text: str, lines: int, characters: int) -> None:
    """Raise UnreadableText for more lines, list elements or characters."""
    if len(text) > characters or text.count("\n") + text.count(",") > lines:
        raise UnreadableText(f"larger than a config: more than {lines} lines or list elements")
