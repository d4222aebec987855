"""Tokens that the policy did not sample, with a logprob of 0 and no mask: what a tool returned."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.tokens.token_batch import TokenBatch

PLANTED_SHARE = (0.05, 0.3, 1.0)
TOOL_TOKENS = 6


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Tokens that the policy did not sample, with a logprob of 0 and no mask: what a tool returned."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        rollout_T, trainer_T = batch.rollout_logprobs_T.copy(), batch.trainer_logprobs_T.copy()
        count = max(1, round(PLANTED_SHARE[dose] * batch.sequences))
        for sequence in rng.choice(batch.sequences, count, replace=False).tolist():
            begin, end = int(batch.offsets[sequence]), int(batch.offsets[sequence + 1])
            begin = int(rng.integers(begin, max(begin + 1, end - TOOL_TOKENS)))
            rows = slice(begin, min(begin + TOOL_TOKENS, end))
            rollout_T[rows] = 0.0
            trainer_T[rows] = -rng.gamma(2.0, 2.0, rows.stop - rows.start)
        return replace(batch, rollout_logprobs_T=rollout_T, trainer_logprobs_T=trainer_T)

    return plant.with_edit(edit)


FAULT = Fault(("in 5 % of the sequences", "in 30 %", "in all"), plant)
