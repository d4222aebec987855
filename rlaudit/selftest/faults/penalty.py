"""A repetition penalty in the engine (generation_config.json) that the trainer does not know of."""

from dataclasses import replace

import numpy as np

from rlaudit.meaning.candidates import Semantics
from rlaudit.selftest.fault import Fault
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

PENALTY = (1.02, 1.05, 1.2)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Sampled and reported with it."""
    asked = plant.sampled
    return replace(plant, sampled=Semantics(asked.temperature, repetition_penalty=PENALTY[dose]), requested=asked)


FAULT = Fault("penalty", ("1.02", "1.05", "1.2"), plant)
