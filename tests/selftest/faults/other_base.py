"""Logprobs of one side that were taken to another base."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.tokens.token_batch import TokenBatch

SIDES = ("rollout_logprobs_T", "trainer_logprobs_T", "trainer_logprobs_T")
BASES = (2, 2, 10)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Logprobs of one side that were taken to another base."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        return replace(batch, **{SIDES[dose]: getattr(batch, SIDES[dose]) / np.log(BASES[dose])})

    return plant.with_edit(edit)


FAULT = Fault(("log2 of the rollouts", "log2 of the trainer", "log10 of the trainer"), plant)
