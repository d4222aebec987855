"""Another prompt on one side: noise from the first token on that fades over some tokens."""

import numpy as np
from worlds.fault import noise_fault
from worlds.ground import Ground

from rlaudit.arrays import Floats


def fading(ground: Ground, rng: np.random.Generator) -> Floats:
    """Another prompt on one side: noise from the first token on that fades over some tokens."""
    faded_T: Floats = np.exp(-ground.position_T / rng.uniform(4.0, 12.0))
    return faded_T


FAULT = noise_fault((3.0, 10.0, 40.0), "at the first token", fading)
