"""Sampled through a nucleus that neither side knows of.

Source: generation_config.json defaults (NeMo-RL 3497, ART 140).
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import HIDDEN, SiblingFault, SiblingWorld
from rlaudit.meaning.candidates import Semantics

PLANTED = (0.95, 0.9, 0.8)


def plant(dose: Dose) -> SiblingWorld:
    """Neither side knows of it."""
    return SiblingWorld(sampled=Semantics(top_p=PLANTED[dose]))


FAULT = SiblingFault("hidden-top-p", tuple(map(str, PLANTED)), plant, HIDDEN)
