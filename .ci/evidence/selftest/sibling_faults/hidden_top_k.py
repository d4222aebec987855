"""Sampled through a top-k that neither side knows of.

Source: generation_config.json defaults (NeMo-RL 69).
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import HIDDEN, SiblingFault, SiblingWorld
from rlaudit.meaning.candidates import Semantics

# Of 256 tokens: 2.8, 4.5 and 6.5 % of the mass go.
PLANTED = (10, 5, 3)


def plant(dose: Dose) -> SiblingWorld:
    """Neither side knows of it."""
    return SiblingWorld(sampled=Semantics(top_k=PLANTED[dose]))


FAULT = SiblingFault("hidden-top-k", ("10", "5", "3"), plant, HIDDEN)
