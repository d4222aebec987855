"""Colour, mark and line of the series of a picture: by role where things have one, else in turn.

Series differ in mark and line as well, for eyes and printers that see no colour.
"""

from collections.abc import Sequence
from typing import Any

from rlaudit.report.drawing.palette import CANDIDATE, OTHER, PARITY, REFERENCE

Style = tuple[str, str, Any]
BY_ROLE: dict[str, Style] = {
    "candidate": (CANDIDATE, "o", "solid"),
    "reference": (REFERENCE, "s", (0, (5, 2))),
    "parity": (PARITY, "D", (0, (1.5, 1.5))),
}
IN_TURN: Sequence[Style] = (*BY_ROLE.values(), (OTHER, "^", (0, (6, 2, 1, 2))))


def styles(roles: Sequence[str]) -> list[Style]:
    """(colour, mark, dashes) of each."""
    return [BY_ROLE.get(role, IN_TURN[place % len(IN_TURN)]) for place, role in enumerate(roles)]
