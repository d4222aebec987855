"""A loss mask that leaves out single tokens by their ratio, as IcePop and masked importance sampling do.

What is left of a fair sample is none: its mean ratio and its sharpness are those of a choice. The tokens are counted,
so that what is judged is what was drawn.
Not covered: masks of whole sequences, and tokens whose logprobs were taken out with them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.tokens.first_look import Check, Finding, run_lengths
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

FEWEST, FEWEST_SEQUENCES = 8, 2
# Of the masked tokens: outside of what the others' ratios reach.
NEARLY_ALL = 0.95
# Tokens on average: the output of a tool comes in stretches.
SINGLE = 2.0
# Of the masked tokens: of end tokens, forced words and markers more have a place, an id or a number in common.
IN_COMMON = 0.5
# Of the counted tokens, whose extremes noise of logging moves.
INSIDE = 0.999


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the loss mask if it is one of ratios."""
    finite_T = np.isfinite(batch.rollout_logprobs_T) & np.isfinite(batch.trainer_logprobs_T)
    masked_T, counted_T = ~batch.counts_T & finite_T, batch.counts_T & finite_T
    masked, sequences = int(masked_T.sum()), len(np.unique(batch.sequence_T[masked_T]))
    if masked < FEWEST or sequences < FEWEST_SEQUENCES or masked < (~batch.counts_T).sum() or masked > counted_T.sum():
        return
    ends_T = np.isin(np.arange(batch.tokens), (batch.offsets[:-1], batch.offsets[1:] - 1))
    alike = [_most_frequent(values_T[masked_T]) for values_T in _shared(batch)]
    if max(*alike, int((ends_T & masked_T).sum())) > IN_COMMON * masked:
        return
    apart_T = np.zeros(batch.tokens)
    apart_T[finite_T] = np.abs(batch.trainer_logprobs_T[finite_T] - batch.rollout_logprobs_T[finite_T])
    reach = float(np.quantile(apart_T[counted_T], INSIDE))
    single = run_lengths(masked_T, batch)[masked_T].mean() <= SINGLE
    if single and (apart_T[masked_T] > reach).mean() >= NEARLY_ALL:
        yield Finding(
            f"loss_mask leaves out exactly the {masked} single tokens whose log ratio is beyond {reach:.2g} nats (a "
            "mask by ratio: IcePop, MIS). These tokens are counted here, because a choice by ratio is no fair sample",
            unused=("loss_mask",),
        )


def _shared(batch: TokenBatch) -> tuple[NDArray[Any], ...]:
    """Return what tokens may have in common; ids only if they are known."""
    ids = () if (batch.token_id_T == NO_TOKEN).all() else (batch.token_id_T,)
    return (batch.rollout_logprobs_T, batch.trainer_logprobs_T, *ids)


def _most_frequent(values_N: NDArray[Any]) -> int:
    return int(np.unique(values_N, return_counts=True)[1].max())


CHECK = Check("chosen-by-ratio", look)
