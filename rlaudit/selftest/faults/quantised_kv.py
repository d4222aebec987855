"""A quantised cache: noise whose variance grows with the context."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.selftest.fault import Fault, doses_in_floors
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

TIMES_FLOOR = (1.5, 5.0, 15.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """More noise on the engine's logits, in units of the floor's."""
    size = TIMES_FLOOR[dose] * ground.generator.floor

    def scale(ground: Ground, rng: np.random.Generator) -> Floats:
        scale_T: Floats = size * np.sqrt(ground.absolute_T / ground.absolute_T.max())
        return scale_T

    return plant.with_scale(scale)


FAULT = Fault("quantised-kv", doses_in_floors(TIMES_FLOOR, "at the longest context"), plant)
