"""Text from elsewhere in Markdown: shown, and obeyed neither as Markdown nor as HTML. Also a table of such text."""

import re
from collections.abc import Callable, Sequence

from rlaudit.printable import one_line

SIGNS = (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), ("*", "\\*"), ("`", "\\`"))
# Only a bracket with one of these behind it makes a link. Others stay: intervals have brackets, and people read the
# source of Markdown, too.
_LINK = re.compile(r"\](?=[\[(:])")
# An underscore within a word, as in names of settings and metrics, is no markup.
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def escaped(text: str) -> str:
    """Return plain text as one line of Markdown."""
    for sign, instead in SIGNS:
        text = text.replace(sign, instead)
    text = _LINK.sub(r"\\]", text)
    return one_line(_EMPHASIS.sub(r"\\_", text))


def cell(text: str) -> str:
    """Return plain text as a cell of a table."""
    return escaped(text).replace("|", "\\|")


def coded(text: str) -> str:
    """Return a value in a table, as code."""
    text = one_line(text).replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], written: Callable[[str], str] = cell) -> str:
    """Return a table; shorter rows end with empty cells. written: escapes a cell."""
    full = [[*map(written, row), *[""] * (len(header) - len(row))] for row in rows]
    lines = [[cell(name) for name in header], ["---"] * len(header), *full]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fenced(code: str, language: str) -> str:
    """Return a block of code, between fences that are longer than any inside it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    return f"{fence}{language}\n{code.rstrip(chr(10))}\n{fence}"
