"""Last tokens of which the two sides have different logprobs, and the tokens before them do not.

One side scored an end of sequence that the other did not sample: a framework appended it, or put another one there.
Not covered: last tokens with one and the same number on one side, which have a check of their own.
"""

from collections.abc import Iterator

import numpy as np

from rlaudit.tokens.first_look import Check, Finding, Places
from rlaudit.tokens.token_batch import TokenBatch

# Sequences of more than two tokens.
FEWEST = 8
# Beyond what engines differ by at one token, and below what an unsampled end of sequence costs.
LAST_TOKEN_NATS, ORDINARY_NATS = 1.0, 0.3
# It is the rule for last tokens, and the exception for all others: a penalty or a bias moves an end of sequence by as
# much, and others with it.
MOST, EXCEPTION = 0.5, 0.02


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the last tokens if those alone are far off."""
    last_S = batch.offsets[1:] - 1
    both_T = batch.comparable_T & np.isfinite(batch.rollout_logprobs_T) & np.isfinite(batch.trainer_logprobs_T)
    apart_T = np.zeros(batch.tokens)
    apart_T[both_T] = np.abs(batch.trainer_logprobs_T[both_T] - batch.rollout_logprobs_T[both_T])
    looked_S = (batch.lengths_S > 2) & both_T[last_S] & both_T[last_S - 1]
    off_S = looked_S & (apart_T[last_S] > LAST_TOKEN_NATS)
    if looked_S.sum() < FEWEST or off_S.sum() < MOST * looked_S.sum():
        return
    others_T = both_T.copy()
    others_T[last_S] = False
    if (apart_T[others_T] > ORDINARY_NATS).mean() > EXCEPTION:
        return
    yield Finding(
        f"in {off_S.sum()} of {looked_S.sum()} sequences only the last token is far off: one side scored an end that "
        "the other did not sample. Last tokens are left out here. Log the same end token on both sides, or loss_mask 0 "
        "for an end token that was not sampled",
        not_drawn=Places(last=True),
        placed=True,
    )


CHECK = Check("strange-ends", look)
