"""Other weights than believed: logits on the way from the trainer's back to the base model's."""

import numpy as np
from worlds.fault import Fault
from worlds.generator import Logits
from worlds.ground import Ground
from worlds.plant import Dose, Plant

PLANTED_PART = (0.02, 0.15, 1.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Other weights than believed: logits on the way from the trainer's back to the base model's."""

    def drift(ground: Ground, rng: np.random.Generator) -> Logits:
        return np.float32(PLANTED_PART[dose]) * (ground.base_TV - ground.logits_TV)

    return plant.with_drift(drift)


FAULT = Fault(("2 % of the training missing", "15 % missing", "all of it missing"), plant)
