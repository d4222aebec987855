"""Samples under one prompt's name answer another one: another chat template, other tools, another image.

Source: dumps that number the rows of a data set, whose prompts are rendered more than once.
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import OPEN, SiblingFault, SiblingWorld
from rlaudit.meaning.broken_groups import Broken

PLANTED = (0.2, 0.5, 1.0)


def plant(dose: Dose) -> SiblingWorld:
    """Every second sample, in a share of the prompts."""
    return SiblingWorld(strangers=PLANTED[dose])


FAULT = SiblingFault(
    "other-prompts",
    ("1 prompt in 5", "half", "all"),
    plant,
    OPEN,
    frozenset({Broken.OTHER_CONTEXTS, Broken.DOUBTFUL_CONTEXTS}),
)
