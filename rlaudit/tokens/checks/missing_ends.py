"""Completions without their end of sequence: a draw like others, and without it the other draws look too sure.

The end of sequence is an id that stands at the end and hardly anywhere else. Completions that ended before the longest
did were ended by it, and if they have none, it was left out. Of a draw from p that did not end, the probabilities are
p / (1 - e): what e is at each token is not known, but on average it is one draw of each completion.
Not covered: text that ends without it (aborted, cut by a budget of tokens that differs): the same is said of it.
"""

from collections.abc import Iterator

import numpy as np

from rlaudit.tokens.first_look import Check, Finding
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

FEWEST_ENDED = 16
# Of an id's tokens, how many stand at the end; and of the completions, how many end with it.
AT_THE_END, OFTEN = 0.9, 0.05
# Of the completions that ended: so many have no end of sequence.
LEAST_LOST = 0.5
# Of all draws: fewer left out move 1/T by less than what would matter.
LEAST_MISSING = 0.01


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield what share of the draws is missing, if ends of sequence are."""
    if batch.has_hashed_ids or (batch.token_id_T == NO_TOKEN).any():
        return
    ended_S = batch.lengths_S < batch.lengths_S.max(initial=0)
    ended = int(ended_S.sum())
    if ended < FEWEST_ENDED:
        return
    last_S = batch.offsets[1:] - 1
    ids, id_T, times_I = np.unique(batch.token_id_T, return_inverse=True, return_counts=True)
    ends_I = np.bincount(id_T[last_S], minlength=len(ids))
    is_end_I = (ends_I >= AT_THE_END * times_I) & (ends_I >= OFTEN * batch.sequences)
    # An end that is not counted is a draw that is missing, too.
    lost = int((ended_S & ~(is_end_I[id_T[last_S]] & batch.counts_T[last_S])).sum())
    tokens = int(batch.counts_T.sum())
    missing = lost / (tokens + lost)
    if lost < LEAST_LOST * ended or missing < LEAST_MISSING:
        return
    yield Finding(
        f"{lost} of {ended} completions that ended early lack a logprob of their end token (mean length "
        f"{batch.lengths_S[ended_S].mean():.0f} tokens). Without the end tokens, the other tokens look likelier "
        "than they were to the sampler, so their temperature is not judged. Log the end token with its logprob",
        ends_missing=missing,
    )


CHECK = Check("missing-ends", look)
