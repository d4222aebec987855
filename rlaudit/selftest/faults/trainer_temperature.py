"""A trainer that recomputes at T=1 what was sampled and reported at T."""

from dataclasses import replace

import numpy as np

from rlaudit.meaning.candidates import Semantics
from rlaudit.selftest.fault import Fault
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

TEMPERATURE = (0.97, 0.9, 0.7)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Temperature left out of the recomputation."""
    return replace(plant, sampled=Semantics(TEMPERATURE[dose]), trainer=Semantics())


FAULT = Fault("trainer-temperature", ("T = 0.97", "T = 0.9", "T = 0.7"), plant)
