"""A quantised cache: noise whose variance grows with the context."""

import numpy as np
from worlds.fault import noise_fault
from worlds.ground import Ground

from rlaudit.arrays import Floats


def growing(ground: Ground, rng: np.random.Generator) -> Floats:
    """A quantised cache: noise whose variance grows with the context."""
    growing_T: Floats = np.sqrt(ground.absolute_T / ground.absolute_T.max())
    return growing_T


FAULT = noise_fault((1.5, 5.0, 15.0), "at the longest context", growing)
