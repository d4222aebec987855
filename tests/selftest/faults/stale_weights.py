"""Old weights: the logits drift with every version that a token lags behind."""

import numpy as np
from worlds.fault import Fault, in_floors
from worlds.generator import Logits
from worlds.ground import TRAINER_VERSION, Ground
from worlds.plant import Dose, Plant

PLANTED_TIMES_FLOOR = (0.5, 3.0, 12.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Old weights: the logits drift with every version that a token lags behind."""

    def drift(ground: Ground, rng: np.random.Generator) -> Logits:
        lag_T = (TRAINER_VERSION - ground.version_T).astype(np.float32)
        size = np.float32(PLANTED_TIMES_FLOOR[dose] * ground.generator.floor)
        return ground.drift(rng) * (size * lag_T)[:, None]

    return plant.with_drift(drift)


FAULT = Fault(in_floors(PLANTED_TIMES_FLOOR, "per version"), plant)
