"""Other weights than believed: logits on the way from the trainer's back to the base model's."""

import numpy as np

from rlaudit.selftest.fault import Fault
from rlaudit.selftest.generator import Logits
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

PART = (0.02, 0.15, 1.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A part of what training changed is missing; 1 is an adapter that was never merged."""

    def drift(ground: Ground, rng: np.random.Generator) -> Logits:
        return np.float32(PART[dose]) * (ground.base_TV - ground.logits_TV)

    return plant.with_drift(drift)


FAULT = Fault("wrong-weights", ("2 % of the training missing", "15 % missing", "all of it missing"), plant)
