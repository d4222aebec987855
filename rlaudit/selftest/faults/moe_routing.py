"""Routing flips: a few tokens, anywhere, with logits far off."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.selftest.fault import Fault
from rlaudit.selftest.ground import Ground
from rlaudit.selftest.plant import Dose, Plant

SHARE = (0.002, 0.012, 0.04)
TIMES_FLOOR = 60.0


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Large noise on a share of the tokens."""

    def scale(ground: Ground, rng: np.random.Generator) -> Floats:
        flipped_T = rng.random(ground.tokens) < SHARE[dose]
        return np.where(flipped_T, TIMES_FLOOR * ground.generator.floor * rng.lognormal(0.0, 0.5, ground.tokens), 0.0)

    return plant.with_scale(scale)


FAULT = Fault("moe-routing", ("0.2 % of the tokens", "1.2 % of the tokens", "4 % of the tokens"), plant)
