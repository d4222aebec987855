"""Old key-value blocks: noise in sequences with cached tokens, fading to a rest."""

import numpy as np
from worlds.fault import noise_fault
from worlds.ground import Ground

from rlaudit.arrays import Floats


def beside_cached_blocks(ground: Ground, rng: np.random.Generator) -> Floats:
    """Old key-value blocks: noise in sequences with cached tokens, fading to a rest."""
    cached_T = ground.cached_S[ground.sequence_T] > 0
    faded_T: Floats = cached_T * (0.2 + 0.8 * np.exp(-ground.position_T / rng.uniform(10.0, 30.0)))
    return faded_T


FAULT = noise_fault((3.0, 10.0, 40.0), "beside the cached block", beside_cached_blocks)
