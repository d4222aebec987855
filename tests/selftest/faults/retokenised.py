"""Text tokenised again: merged and split tokens shift the trainer's side further and further."""

from dataclasses import replace

import numpy as np
from worlds.fault import Fault
from worlds.ground import Ground
from worlds.plant import Dose, Plant

from rlaudit.arrays import Floats
from rlaudit.tokens.token_batch import TokenBatch

PLANTED_SHARE = (0.05, 0.3, 1.0)
MERGED_EVERY = 8.0


def _again(logprobs_L: Floats, rng: np.random.Generator) -> Floats:
    """Mostly merges of two tokens into one, sometimes the reverse, from a place in the first half on."""
    length = len(logprobs_L)
    place = int(rng.integers(1, max(2, length // 2)))
    scored = logprobs_L[:place].tolist()
    while place < length:
        if place + 1 < length and rng.random() < 1.0 / MERGED_EVERY:
            if rng.random() < 0.8:
                scored.append(logprobs_L[place] + logprobs_L[place + 1])
                place += 2
                continue
            scored.append(-rng.exponential(1.0))
        scored.append(logprobs_L[place])
        place += 1
    padded = [*scored, *(-rng.exponential(1.0, length))]
    return np.array(padded[:length])


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Text tokenised again: merged and split tokens shift the trainer's side further and further."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        trainer_T = batch.trainer_logprobs_T.copy()
        count = max(1, round(PLANTED_SHARE[dose] * batch.sequences))
        for sequence in rng.choice(batch.sequences, count, replace=False).tolist():
            rows = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
            trainer_T[rows] = _again(trainer_T[rows], rng)
        return replace(batch, trainer_logprobs_T=trainer_T)

    return plant.with_edit(edit)


FAULT = Fault(("5 % of the sequences", "30 %", "all"), plant)
