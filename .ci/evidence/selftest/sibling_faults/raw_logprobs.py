"""Sampled and recomputed at a temperature, reported before it.

Source: vLLM 9453 and 42259, TRL 4159.
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import SiblingFault, SiblingWorld
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.meaning import Kind

PLANTED = (0.95, 0.9, 0.7)


def plant(dose: Dose) -> SiblingWorld:
    """The raw mode of V1."""
    asked = Semantics(PLANTED[dose])
    return SiblingWorld(sampled=asked, trainer=asked, asked=asked, told=asked)


FAULT = SiblingFault("raw-logprobs", ("T = 0.95", "T = 0.9", "T = 0.7"), plant, frozenset({Kind.RAW_REPORT}))
