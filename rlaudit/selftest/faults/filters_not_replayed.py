"""Processed logprobs under a filter, a trainer over the whole vocabulary."""

from dataclasses import replace

import numpy as np

from rlaudit.meaning.candidates import Semantics
from rlaudit.selftest.fault import Fault
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A filter that was asked for, reported and not replayed."""
    filters = ground.generator.filters(int(dose), rng)
    return replace(plant, sampled=Semantics(plant.sampled.temperature, **filters))  # type: ignore[arg-type]


FAULT = Fault("filters-not-replayed", ("a light filter", "a usual one", "a strong one"), plant)
