"""Kernels that depend on the batch: each batch has noise of its own size."""

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
        of_batch_B = np.exp(rng.normal(0.0, 0.8, int(ground.batch_S.max()) + 1))
        return size * of_batch_B[ground.batch_S][ground.sequence_T]

    return plant.with_scale(scale)


FAULT = Fault("batch-dependence", doses_in_floors(TIMES_FLOOR, "in a typical batch"), plant)
