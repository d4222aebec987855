"""Another prompt on one side: noise from the first token on that fades over some tokens."""

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
        fades_over = rng.uniform(4.0, 12.0)
        return size * np.exp(-ground.position_T / fades_over)

    return plant.with_scale(scale)


FAULT = Fault("bos", doses_in_floors(TIMES_FLOOR, "at the first token"), plant)
