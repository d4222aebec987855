"""A repetition penalty in the engine (generation_config.json) that the trainer does not know of."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.meaning.candidates import Semantics

PLANTED_PENALTY = (1.02, 1.05, 1.2)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A repetition penalty in the engine (generation_config.json) that the trainer does not know of."""
    asked = plant.sampled
    return replace(
        plant, sampled=Semantics(asked.temperature, repetition_penalty=PLANTED_PENALTY[dose]), requested=asked
    )


FAULT = Fault(("1.02", "1.05", "1.2"), plant)
