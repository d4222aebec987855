"""A loss mask that does not begin or end where the policy stopped and went on sampling.

Covered: stretches that no sampler reported, as of a tool: they have one number, or nothing, as rollout logprob.
If the mask around most of them begins or ends a few tokens off, some tokens are trained that were never sampled.
Not covered: masks of whole turns, and masks that only leave out sampled tokens: that may be meant.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rlaudit.tokens.first_look import Check, Finding, Places, has_value, run_lengths
from rlaudit.tokens.token_batch import TokenBatch

# Tokens: the output of a tool has more than this, and a mask that is farther off is another one.
STRETCH, FARTHEST = 4, 3
FEWEST, FEWEST_SEQUENCES = 8, 2
NEARLY_ALL = 0.95
# Of the tokens that the mask leaves out.
MOST = 0.5


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the loss mask if it stands off the stretches that were sampled."""
    number = _placed_number(batch)
    if number is None:
        return
    placed_T = has_value(batch.rollout_logprobs_T, number)
    stretches = _stretches(placed_T & (run_lengths(placed_T, batch) >= STRETCH), batch)
    masked = dict(_stretches(~batch.counts_T, batch))
    edges: Counter[tuple[int, int]] = Counter()
    sequences: dict[tuple[int, int], set[int]] = {}
    for begin, end in stretches:
        near = [place for place in range(begin - FARTHEST, begin + FARTHEST + 1) if place in masked]
        if len(near) == 1 and abs(masked[near[0]] - end) <= FARTHEST:
            off = near[0] - begin, masked[near[0]] - end
            edges[off] += 1
            sequences.setdefault(off, set()).add(int(batch.sequence_T[begin]))
    if not edges:
        return
    (late, late_at_end), count = edges.most_common(1)[0]
    trained = max(late, 0) + max(-late_at_end, 0)
    enough = count >= FEWEST and len(sequences[late, late_at_end]) >= FEWEST_SEQUENCES
    if not trained or not enough or count < NEARLY_ALL * edges.total():
        return
    left_out = max(-late, 0) + max(late_at_end, 0)
    has = "no rollout_logprob" if np.isnan(number) else f"the rollout_logprob {number:g}"
    yield Finding(
        f"around {count} of {edges.total()} stretches that were not sampled ({has}) the loss mask begins {_off(late)} "
        f"and ends {_off(late_at_end)}. So the mask counts {trained * count} tokens that the policy did not sample and "
        f"leaves out {left_out * count} sampled ones. Move the mask to where sampling stopped and went on",
        not_drawn=Places("rollout_logprob", number),
        mask_off=True,
    )


def _placed_number(batch: TokenBatch) -> float | None:
    """Return the number that most tokens have which the mask leaves out; None if they have none in common."""
    masked = batch.rollout_logprobs_T[~batch.counts_T]
    if masked.size < FEWEST:
        return None
    missing = int(np.isnan(masked).sum())
    numbers, counts = np.unique(masked[np.isfinite(masked)], return_counts=True)
    number, count = (float(numbers[counts.argmax()]), int(counts.max())) if counts.size else (np.nan, 0)
    number, count = (np.nan, missing) if missing > count else (number, count)
    return number if count >= MOST * masked.size else None


def _stretches(chosen_T: NDArray[np.bool_], batch: TokenBatch) -> list[tuple[int, int]]:
    """Return begin and end of each stretch of chosen tokens that neither begins nor ends its sequence."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen_T, [False]]).astype(np.int8)))
    bounds = set(batch.offsets.tolist())
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return [(begin, end) for begin, end in pairs if begin not in bounds and end not in bounds]


def _off(tokens: int) -> str:
    if not tokens:
        return "in place"
    return f"{abs(tokens)} {'token' if abs(tokens) == 1 else 'tokens'} {'late' if tokens > 0 else 'early'}"


CHECK = Check("loss-mask-off-spans", look)
