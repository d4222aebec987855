"""Sampled and reported at a temperature, recomputed at 1.

Source: verl 4252, prime-rl 697, ms-swift 8427.
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import SiblingFault, SiblingWorld
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.meaning import Kind

PLANTED = (0.95, 0.9, 0.7)


def plant(dose: Dose) -> SiblingWorld:
    """The trainer is said to divide by it, and does not."""
    asked = Semantics(PLANTED[dose])
    return SiblingWorld(sampled=asked, reported=asked, asked=asked, told=asked)


FAULT = SiblingFault("trainer-temperature", ("T = 0.95", "T = 0.9", "T = 0.7"), plant, frozenset({Kind.TRAINER}))
