"""Routing flips: a few tokens, anywhere, with logits far off."""

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.arrays import Floats

PLANTED_SHARE = (0.002, 0.012, 0.04)
PLANTED_TIMES_FLOOR = 60.0


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Routing flips: a few tokens, anywhere, with logits far off."""

    def scale(ground: Ground, rng: np.random.Generator) -> Floats:
        flipped_T = rng.random(ground.tokens) < PLANTED_SHARE[dose]
        return np.where(
            flipped_T, PLANTED_TIMES_FLOOR * ground.generator.floor * rng.lognormal(0.0, 0.5, ground.tokens), 0.0
        )

    return plant.with_scale(scale)


FAULT = Fault(("0.2 % of the tokens", "1.2 % of the tokens", "4 % of the tokens"), plant)
