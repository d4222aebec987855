"""Words of others in Markdown: shown, and obeyed neither as Markdown nor as HTML."""

import re

from rlaudit.printable import one_line

SIGNS = (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), ("*", "\\*"), ("`", "\\`"))
# A bracket makes a link only with what follows it; intervals are brackets, and people read Markdown as it is, too.
_LINK = re.compile(r"\](?=[\[(:])")
# Within a word an underscore is no markup, and names of settings and metrics are full of them.
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def escaped(text: str) -> str:
    """One line of plain text."""
    for sign, instead in SIGNS:
        text = text.replace(sign, instead)
    text = _LINK.sub(r"\\]", text)
    return one_line(_EMPHASIS.sub(r"\\_", text))


def cell(text: str) -> str:
    """The same in a table."""
    return escaped(text).replace("|", "\\|")


def fenced(code: str, language: str) -> str:
    """A block of code, between fences that are longer than any inside it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    return f"{fence}{language}\n{code.rstrip(chr(10))}\n{fence}"
