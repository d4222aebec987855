"""Raw mode: sampled and recomputed at T, reported at 1."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.meaning.candidates import Semantics

PLANTED_TEMPERATURE = (0.97, 0.9, 0.7)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Raw mode: sampled and recomputed at T, reported at 1."""
    asked = Semantics(PLANTED_TEMPERATURE[dose])
    return replace(plant, sampled=asked, trainer=asked, reported=Semantics())


FAULT = Fault(("T = 0.97", "T = 0.9", "T = 0.7"), plant)
