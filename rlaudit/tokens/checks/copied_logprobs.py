"""A trainer's column that is the engine's, bit for bit: no trainer computed it.

Two programs that compute the same logprob differ in its last bits; a trainer that trusts the rollouts' logprobs
(verl's bypass mode) logs a copy of them. It shows nothing of the trainer.
Not covered: copies that were rounded, and engines made to agree to the last bit: their logs cannot be told from copies.
"""

from collections.abc import Iterator

import numpy as np

from rlaudit.tokens.first_look import Check, Finding
from rlaudit.tokens.token_batch import TokenBatch

# Two float32 logprobs of one number agree in their last bits once in ten at best.
FEWEST = 64
# A sure token has a logprob of 0 on both sides.
SURE = -1e-3


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the trainer's logprobs if they are a copy."""
    rollout_T, trainer_T = (side[batch.comparable_T] for side in (batch.rollout_logprobs_T, batch.trainer_logprobs_T))
    telling_T = rollout_T < SURE
    if telling_T.sum() < FEWEST or not np.array_equal(rollout_T, trainer_T, equal_nan=True):
        return
    yield Finding(
        f"trainer_logprob is a copy of rollout_logprob, bit for bit in {len(rollout_T)} tokens. Log what the trainer "
        "computes itself (in verl, without bypass mode), or score a sample with --score MODEL",
        unused=("trainer_logprob", "trainer_entropy"),
    )


CHECK = Check("copied-logprobs", look)
