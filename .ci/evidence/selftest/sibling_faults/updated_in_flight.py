"""Half of a prompt's samples are drawn after an update of the weights, and no version is logged.

Source: in-flight weight updates (PipelineRL, Magistral). The pull on agreement is below what anything names: what is
asked of it is that no cause is named.
"""

from worlds.plant import Dose

from evidence.selftest.sibling_world import OPEN, SiblingFault, SiblingWorld
from rlaudit.meaning.meaning import Kind

PLANTED = (0.02, 0.05, 0.1)


def plant(dose: Dose) -> SiblingWorld:
    """Every logit moves on its own."""
    return SiblingWorld(drift=PLANTED[dose])


FAULT = SiblingFault("updated-in-flight", tuple(f"{nats} nats a logit" for nats in PLANTED), plant, OPEN | {Kind.AGREE})
