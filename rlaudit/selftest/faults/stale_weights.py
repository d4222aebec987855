"""Old weights: the logits drift with every version that a token lags behind."""

import numpy as np

from rlaudit.selftest.fault import Fault, doses_in_floors
from rlaudit.selftest.generator import Logits
from rlaudit.selftest.ground import TRAINER_VERSION, Ground
from rlaudit.selftest.plant import Dose, Plant

TIMES_FLOOR = (0.5, 3.0, 12.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A drift per version, in units of the floor's noise."""

    def drift(ground: Ground, rng: np.random.Generator) -> Logits:
        lag_T = (TRAINER_VERSION - ground.version_T).astype(np.float32)
        size = np.float32(TIMES_FLOOR[dose] * ground.generator.floor)
        return ground.drift(rng) * (size * lag_T)[:, None]

    return plant.with_drift(drift)


FAULT = Fault("stale-weights", doses_in_floors(TIMES_FLOOR, "per version"), plant)
