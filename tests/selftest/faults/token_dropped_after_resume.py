"""A rollout loses the first token after a resume: its later logprobs come one place too early."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.tokens.token_batch import TokenBatch

PLANTED_SHARE = (0.05, 0.3, 1.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A rollout loses the first token after a resume: its later logprobs come one place too early."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        rollout_T = batch.rollout_logprobs_T.copy()
        version_T = batch.token_columns["rollout_version"]
        inside_T = batch.sequence_T[1:] == batch.sequence_T[:-1]
        resumed = np.flatnonzero((version_T[1:] != version_T[:-1]) & inside_T) + 1
        chosen = rng.choice(resumed, max(1, round(PLANTED_SHARE[dose] * len(resumed))), replace=False)
        for first in chosen.tolist():
            end = batch.offsets[batch.sequence_T[first] + 1]
            rollout_T[first : end - 1] = rollout_T[first + 1 : end]
            rollout_T[end - 1] = rng.choice(batch.rollout_logprobs_T)
        return replace(batch, rollout_logprobs_T=rollout_T)

    return plant.with_edit(edit)


FAULT = Fault(("5 % of the resumed sequences", "30 %", "all"), plant)
