"""Processed logprobs under a filter, a trainer over the whole vocabulary."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.meaning.candidates import Semantics


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Processed logprobs under a filter, a trainer over the whole vocabulary."""
    filters = ground.generator.filters(int(dose), rng)
    return replace(plant, sampled=Semantics(plant.sampled.temperature, **filters))  # type: ignore[arg-type]


FAULT = Fault(("a light filter", "a usual one", "a strong one"), plant)
