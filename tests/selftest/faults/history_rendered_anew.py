"""Turns whose history the engine saw with other tokens: noise in all of them, larger at their beginning."""

import numpy as np
from worlds.fault import noise_fault
from worlds.ground import Ground

from rlaudit.arrays import Floats


def after_a_change(ground: Ground, rng: np.random.Generator) -> Floats:
    """Turns whose history the engine saw with other tokens: noise in all of them, larger at their beginning."""
    changed_T = ground.changed_S[ground.sequence_T]
    faded_T: Floats = changed_T * (0.5 + 0.5 * np.exp(-ground.position_T / rng.uniform(10.0, 30.0)))
    return faded_T


FAULT = noise_fault((4.0, 12.0, 40.0), "after a changed history", after_a_change)
