"""A filter nobody asked for (generation_config.json), in neither side's logprobs."""

from dataclasses import replace

import numpy as np

from rlaudit.meaning.candidates import Semantics
from rlaudit.selftest.fault import Fault
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A filter on the sampler only."""
    filters = ground.generator.filters(int(dose), rng)
    asked = plant.sampled
    hidden = Semantics(asked.temperature, **filters)  # type: ignore[arg-type]
    return replace(plant, sampled=hidden, reported=plant.reported or asked, requested=asked)


FAULT = Fault("hidden-truncation", ("a light filter", "a usual one", "a strong one"), plant)
