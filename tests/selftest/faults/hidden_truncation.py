"""A filter nobody asked for (generation_config.json), in neither side's logprobs."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.meaning.candidates import Semantics


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A filter nobody asked for (generation_config.json), in neither side's logprobs."""
    filters = ground.generator.filters(int(dose), rng)
    asked = plant.sampled
    hidden = Semantics(asked.temperature, **filters)  # type: ignore[arg-type]
    return replace(plant, sampled=hidden, reported=plant.reported or asked, requested=asked)


FAULT = Fault(("a light filter", "a usual one", "a strong one"), plant)
