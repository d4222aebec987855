"""Raw mode: sampled and recomputed at T, reported at 1."""

from dataclasses import replace

import numpy as np

from rlaudit.meaning.candidates import Semantics
from rlaudit.selftest.fault import Fault
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

TEMPERATURE = (0.97, 0.9, 0.7)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Temperature left out of the report."""
    asked = Semantics(TEMPERATURE[dose])
    return replace(plant, sampled=asked, trainer=asked, reported=Semantics())


FAULT = Fault("raw-logprobs", ("T = 0.97", "T = 0.9", "T = 0.7"), plant)
