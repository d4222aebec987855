"""A bfloat16 head in the engine only; the larger the logits, the coarser their steps."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

PLANTED_LARGEST_LOGIT = (3.0, 12.0, 24.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A bfloat16 head in the engine only; the larger the logits, the coarser their steps."""
    return replace(plant, head_at=PLANTED_LARGEST_LOGIT[dose])


FAULT = Fault(("largest logits near 3", "near 12", "near 24"), plant)
