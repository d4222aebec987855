"""A mask of a tool's tokens that begins and ends one token late."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.tokens.token_batch import TokenBatch

PLANTED_SHARE = (0.1, 0.4, 1.0)
TOOL_TOKENS = 6


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A mask of a tool's tokens that begins and ends one token late."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        rollout_T, mask_T = batch.rollout_logprobs_T.copy(), np.ones(batch.tokens)
        long_enough = np.flatnonzero(batch.lengths_S > TOOL_TOKENS + 4)
        count = max(1, round(PLANTED_SHARE[dose] * long_enough.size))
        for sequence in rng.choice(long_enough, count, replace=False).tolist():
            begin, end = int(batch.offsets[sequence]), int(batch.offsets[sequence + 1])
            begin = int(rng.integers(begin + 1, end - TOOL_TOKENS - 1))
            rollout_T[begin : begin + TOOL_TOKENS] = 0.0
            mask_T[begin + 1 : begin + TOOL_TOKENS + 1] = 0.0
        return replace(batch, rollout_logprobs_T=rollout_T, token_columns={**batch.token_columns, "loss_mask": mask_T})

    return plant.with_edit(edit)


FAULT = Fault(("in 10 % of the sequences", "in 40 %", "in all"), plant)
