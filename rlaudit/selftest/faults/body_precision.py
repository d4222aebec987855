"""Rounding in the body: more of the noise that is there anyway."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.selftest.fault import Fault, doses_in_floors
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

TIMES_FLOOR = (1.5, 4.0, 10.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """More noise on the engine's logits, in units of the floor's."""
    size = TIMES_FLOOR[dose] * ground.generator.floor

    def scale(ground: Ground, rng: np.random.Generator) -> Floats:
        return np.full(ground.tokens, size)

    return plant.with_scale(scale)


FAULT = Fault("body-precision", doses_in_floors(TIMES_FLOOR, ""), plant)
