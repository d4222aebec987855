"""The pictures of a report on a terminal: a line of blocks for each series."""

import textwrap
from collections.abc import Sequence

from rlaudit.printable import one_line, printable
from rlaudit.report.figures import number
from rlaudit.report.picture import Picture
from rlaudit.report.pictures_of import pictures_of
from rlaudit.report.report import Report

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "
INDENT = "   "
NARROWEST = 24


def render(document: Report, width: int | None) -> str:
    """Nothing for a document without lines to draw. width: of the terminal; longer lines of blocks are thinned."""
    drawn, _ = pictures_of(printable(dict(document)))
    lines = [line for picture in drawn for line in _lines(picture, width)]
    return "\n".join(["", *lines]) + "\n" if lines else ""


def _lines(picture: Picture, width: int | None) -> list[str]:
    if not picture.sparklines:
        return []
    names = [one_line(one.name) for one in picture.sparklines]
    room = None if width is None else max(width - len(INDENT), NARROWEST)
    title = one_line(f"{picture.full_title} ({picture.sparklines[0].ends})")
    lines = [title] if width is None else textwrap.wrap(title, width)
    longest = max(map(len, names))
    for name, one in zip(names, picture.sparklines, strict=True):
        known = [value for value in one.values if value is not None]
        span = f"{number(min(known))} to {number(max(known))}" if known else "no value"
        before = f"{name.ljust(longest)}  "
        left = None if room is None else room - len(before) - len(span) - 2
        if room is not None and left is not None and left < NARROWEST:
            lines += [INDENT + part for part in textwrap.wrap(f"{name}  {span}", room)]
            before, span, left = "", "", room
        blocks = sparkline(one.values if left is None else _thinned(one.values, left))
        lines.append(f"{INDENT}{before}{blocks}  {span}".rstrip())
    return [*lines, ""]


def _thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    step = -(-len(values) // most)
    return list(values[::step])


def sparkline(values: Sequence[float | None]) -> str:
    """One character for each value, from the lowest to the highest; a blank where there is none."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    step = (high - low) / len(BLOCKS) or 1.0
    return "".join(GAP if one is None else BLOCKS[min(int((one - low) / step), len(BLOCKS) - 1)] for one in values)


def encodable(encoding: str | None) -> bool:
    """Whether a stream of this encoding can carry the blocks."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
