"""Samples of one prompt share one seed.

Source: an engine seeded once for a whole group (torchforge's rollouts, vLLM's seed per request set to a constant).
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import OPEN, SiblingFault, SiblingWorld
from rlaudit.meaning.broken_groups import Broken

PLANTED = (0.2, 0.5, 1.0)


def plant(dose: Dose) -> SiblingWorld:
    """In a share of the prompts."""
    return SiblingWorld(copied=PLANTED[dose])


FAULT = SiblingFault("copies", ("1 prompt in 5", "half", "all"), plant, OPEN, frozenset({Broken.COPIES}))
