"""Another kernel path at block edges: noise on the first token after each block of 16."""

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
        return np.where(ground.absolute_T % 16 == 0, size, 0.0)

    return plant.with_scale(scale)


FAULT = Fault("chunk-boundary", doses_in_floors(TIMES_FLOOR, "at an edge"), plant)
