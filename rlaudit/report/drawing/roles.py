"""Colour and shape of an arm, by what it is for."""

from rlaudit.report.drawing.palette import CANDIDATE, OTHER, PARITY, REFERENCE

_STYLES = {
    "reference": (REFERENCE, "s"),
    "candidate": (CANDIDATE, "o"),
    "candidate again": (CANDIDATE, "o"),
    "one at a time": (CANDIDATE, "o"),
    "parity": (PARITY, "D"),
    "parity again": (PARITY, "D"),
    "left out of parity": (PARITY, "D"),
}


def style_of(role: str) -> tuple[str, str]:
    """(colour, shape); tables of a comparison have no role and one style."""
    return _STYLES.get(role, (CANDIDATE, "o") if not role else (OTHER, "^"))
