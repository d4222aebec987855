"""Old key-value blocks: noise in sequences with cached tokens, fading to a rest."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.selftest.fault import Fault, doses_in_floors
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

TIMES_FLOOR = (3.0, 10.0, 40.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """More noise on the engine's logits, in units of the floor's."""
    size = TIMES_FLOOR[dose] * ground.generator.floor

    def scale(ground: Ground, rng: np.random.Generator) -> Floats:
        cached_T = ground.cached_S[ground.sequence_T] > 0
        fades_over = rng.uniform(10.0, 30.0)
        return size * cached_T * (0.2 + 0.8 * np.exp(-ground.position_T / fades_over))

    return plant.with_scale(scale)


FAULT = Fault("stale-prefix-kv", doses_in_floors(TIMES_FLOOR, "beside the cached block"), plant)
