"""A trainer that recomputes at T=1 what was sampled and reported at T."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.meaning.candidates import Semantics

PLANTED_TEMPERATURE = (0.97, 0.9, 0.7)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A trainer that recomputes at T=1 what was sampled and reported at T."""
    return replace(plant, sampled=Semantics(PLANTED_TEMPERATURE[dose]), trainer=Semantics())


FAULT = Fault(("T = 0.97", "T = 0.9", "T = 0.7"), plant)
