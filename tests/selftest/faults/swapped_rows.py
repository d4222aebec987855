"""A batch that was put in another order on the trainer's side only: each row stands beside the next one's tokens."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.tokens.token_batch import TokenBatch

PLANTED_SHARE = (0.05, 0.3, 1.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Put some of the trainer's rows in another order, each cut or padded to the length of its new place."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        trainer_T = batch.trainer_logprobs_T.copy()
        count = max(4, round(PLANTED_SHARE[dose] * batch.sequences))
        moved = rng.choice(batch.sequences, min(count, batch.sequences), replace=False)
        for place, row in zip(moved.tolist(), np.roll(moved, 1).tolist(), strict=True):
            here = slice(batch.offsets[place], batch.offsets[place + 1])
            there = batch.trainer_logprobs_T[batch.offsets[row] : batch.offsets[row + 1]]
            padded = [*there, *(-rng.exponential(1.0, here.stop - here.start))]
            trainer_T[here] = padded[: here.stop - here.start]
        return replace(batch, trainer_logprobs_T=trainer_T)

    return plant.with_edit(edit)


FAULT = Fault(("5 % of the rows", "30 %", "all"), plant)
