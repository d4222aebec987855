"""Colours by what they mean, and the mark, line and colour of an arm or a series.

In a drawing each colour is a placeholder that the page's style sheet gives its real colour. Series differ in mark and
line as well, for eyes and printers that see no colour.
"""

from collections.abc import Sequence
from typing import Any

INK = "#010001"
MUTED = "#010002"
GRID = "#010003"
BAND = "#010004"
PAPER = "#010005"
REFERENCE = "#010006"
CANDIDATE = "#010007"
PARITY = "#010008"
OTHER = "#010009"
PLACEHOLDERS = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    BAND: "band",
    PAPER: "paper",
    REFERENCE: "reference",
    CANDIDATE: "candidate",
    PARITY: "parity",
    OTHER: "other",
}
Style = tuple[str, str, Any]
_REFERENCE: Style = (REFERENCE, "s", (0, (5, 2)))
_CANDIDATE: Style = (CANDIDATE, "o", "solid")
_PARITY: Style = (PARITY, "D", (0, (1.5, 1.5)))
_OTHER: Style = (OTHER, "^", (0, (6, 2, 1, 2)))
# Arms that are drawn line by line, in reading order.
_MAIN = {"candidate": _CANDIDATE, "reference": _REFERENCE, "parity": _PARITY}
_ROLES = {
    **_MAIN,
    "candidate again": _CANDIDATE,
    "one at a time": _CANDIDATE,
    "parity again": _PARITY,
    "left out of parity": _PARITY,
}
_IN_TURN = (_CANDIDATE, _REFERENCE, _PARITY, _OTHER)


def mark_of(role: str) -> tuple[str, str]:
    """Return (colour, mark) of an arm's row. Tables of a comparison have no role, and all the same style."""
    colour, mark, _ = _ROLES.get(role, _OTHER if role else _CANDIDATE)
    return colour, mark


def styles(roles: Sequence[str]) -> list[Style]:
    """Return (colour, mark, dashes) of each series: by its role if it has one, else in turn."""
    return [_MAIN.get(role, _IN_TURN[index % len(_IN_TURN)]) for index, role in enumerate(roles)]
