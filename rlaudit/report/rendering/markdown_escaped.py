"""Text from elsewhere in Markdown: shown, and obeyed neither as Markdown nor as HTML. Also a table of such text.

What GitHub and GitLab make live without any markup (a mention, which notifies people, an issue, a commit, an address)
is shown as code, which they leave alone.
"""

import re
from collections.abc import Callable, Sequence

from rlaudit.text.printable import one_line

SIGNS = (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), ("*", "\\*"), ("`", "\\`"))
# Only a bracket with one of these behind it makes a link. Others stay: intervals have brackets, and people read the
# source of Markdown, too.
_LINK = re.compile(r"\](?=[\[(:])")
# An underscore within a word, as in names of settings and metrics, is no markup.
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# Source: GitHub's "Autolinked references and URLs" and the extended autolinks of GitHub Flavored Markdown, 6.9.
_LIVE = re.compile(
    r"(?i)((?:\b(?:https?|ftp)://|\bwww\.|\b(?:mailto|xmpp):)[^\s`'\"<>|]{0,2000}[^\s`'\"<>|.,;:!?)\]}*]"
    r"|[\w./+-]{0,99}@\w(?:[\w./-]{0,99}\w)?|[\w./-]{0,99}[#!]\d+|\bGH-\d+|\b[0-9a-f]{40}\b)"
)


def inert(text: str, written: Callable[[str], str] = str) -> str:
    """Return text in which what is live without markup is code. written: escapes everything else."""
    return "".join(f"`{part}`" if place % 2 else written(part) for place, part in enumerate(_LIVE.split(text)))


def escaped(text: str) -> str:
    """Return plain text as one line of Markdown."""
    return one_line(inert(text, _escaped))


def _escaped(text: str) -> str:
    for sign, instead in SIGNS:
        text = text.replace(sign, instead)
    return _EMPHASIS.sub(r"\\_", _LINK.sub(r"\\]", text))


def cell(text: str) -> str:
    """Return plain text as a cell of a table."""
    return escaped(text).replace("|", "\\|")


def coded(text: str) -> str:
    """Return a value in a table, as code."""
    text = one_line(text).replace("|", "\\|")
    ticks = _longer_than_any_in(text, 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], written: Callable[[str], str] = cell) -> str:
    """Return a table; shorter rows end with empty cells. written: escapes a cell."""
    full = [[*map(written, row), *[""] * (len(header) - len(row))] for row in rows]
    lines = [[cell(name) for name in header], ["---"] * len(header), *full]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fenced(code: str, language: str) -> str:
    """Return a block of code, between fences that are longer than any inside it."""
    fence = _longer_than_any_in(code, 3)
    return f"{fence}{language}\n{code.rstrip(chr(10))}\n{fence}"


def _longer_than_any_in(code: str, least: int) -> str:
    """Return a run of at least that many backticks that does not occur in the code, so that it cannot end there."""
    return "`" * max([least, *(len(run) + 1 for run in re.findall("`+", code))])
