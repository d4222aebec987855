"""A bfloat16 head in the engine only; the larger the logits, the coarser their steps."""

from dataclasses import replace

import numpy as np

from rlaudit.selftest.fault import Fault
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

LARGEST_LOGIT = (3.0, 12.0, 24.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Logits rounded to 8 significant bits."""
    return replace(plant, head_at=LARGEST_LOGIT[dose])


FAULT = Fault("head-precision", ("largest logits near 3", "near 12", "near 24"), plant)
