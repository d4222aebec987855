"""Sampled through a min-p that neither side knows of.

Source: model cards that recommend it, and generation_config.json that carries it into a run.
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import HIDDEN, SiblingFault, SiblingWorld
from rlaudit.meaning.candidates import Semantics

PLANTED = (0.02, 0.05, 0.2)


def plant(dose: Dose) -> SiblingWorld:
    """Neither side knows of it."""
    return SiblingWorld(sampled=Semantics(min_p=PLANTED[dose]))


FAULT = SiblingFault("hidden-min-p", tuple(map(str, PLANTED)), plant, HIDDEN)
