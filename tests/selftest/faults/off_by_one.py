"""Labels sliced [1:] on one side: the trainer's logprobs belong to the neighbouring token."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.tokens.token_batch import TokenBatch

PLANTED_SHARE = (0.05, 0.5, 1.0)


def _chosen(batch: TokenBatch, share: float, rng: np.random.Generator) -> list[int]:
    count = max(1, round(share * batch.sequences))
    return sorted(rng.choice(batch.sequences, count, replace=False).tolist())


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Labels sliced [1:] on one side: the trainer's logprobs belong to the neighbouring token."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        trainer_T = batch.trainer_logprobs_T.copy()
        shift = int(rng.choice([-1, 1]))
        for sequence in _chosen(batch, PLANTED_SHARE[dose], rng):
            rows = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
            trainer_T[rows] = np.roll(trainer_T[rows], shift)
        return replace(batch, trainer_logprobs_T=trainer_T)

    return plant.with_edit(edit)


FAULT = Fault(("5 % of the sequences", "half", "all"), plant)
