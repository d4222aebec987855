"""Rows of another log on the trainer's side: nothing in common with the rollouts', from the first token on."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.tokens.token_batch import TokenBatch

PLANTED_SHARE = (0.05, 0.2, 0.6)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Put logprobs of other tokens, in no order of the log, in place of some of the trainer's rows."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        trainer_T = batch.trainer_logprobs_T.copy()
        count = max(4, round(PLANTED_SHARE[dose] * batch.sequences))
        for sequence in rng.choice(batch.sequences, min(count, batch.sequences), replace=False).tolist():
            rows = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
            trainer_T[rows] = rng.choice(batch.trainer_logprobs_T, rows.stop - rows.start)
        return replace(batch, trainer_logprobs_T=trainer_T)

    return plant.with_edit(edit)


FAULT = Fault(("5 % of the rows", "20 %", "60 %"), plant)
