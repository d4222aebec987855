"""Another kernel path at block edges: noise on the first token after each block of 16."""

import numpy as np
from worlds.fault import noise_fault
from worlds.ground import Ground

from rlaudit.arrays import Floats
from rlaudit.causes.chunk_boundary import PERIODS


def at_edges(ground: Ground, rng: np.random.Generator) -> Floats:
    """Another kernel path at block edges: noise on the first token after each block of 16."""
    return np.where(ground.absolute_T % PERIODS[0] == 0, 1.0, 0.0)


FAULT = noise_fault((3.0, 10.0, 40.0), "at an edge", at_edges)
