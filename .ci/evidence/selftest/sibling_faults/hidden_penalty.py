"""Sampled with a repetition penalty that neither side knows of.

Source: generation_config.json defaults; vLLM 27878 (penalties lost with async scheduling in 0.11.0).
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import SiblingFault, SiblingWorld
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.meaning import Kind

PLANTED = (1.05, 1.1, 1.2)


def plant(dose: Dose) -> SiblingWorld:
    """Neither side knows of it."""
    return SiblingWorld(sampled=Semantics(repetition_penalty=PLANTED[dose]))


FAULT = SiblingFault("hidden-penalty", ("1.05", "1.1", "1.2"), plant, frozenset({Kind.HIDDEN_SAMPLING}))
