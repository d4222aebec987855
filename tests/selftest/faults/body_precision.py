"""Rounding in the body: more of the noise that is there anyway."""

import numpy as np
from worlds.fault import noise_fault
from worlds.ground import Ground

from rlaudit.arrays import Floats


def everywhere(ground: Ground, rng: np.random.Generator) -> Floats:
    """Rounding in the body: more of the noise that is there anyway."""
    return np.ones(ground.tokens)


FAULT = noise_fault((1.5, 4.0, 10.0), "", everywhere)
