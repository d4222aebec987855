"""From where on does a sequence agree at no lag at all: other tokens, or two engines that merely differ much?

Covered: agreement that was there, is lost and does not come back. Told from a large mismatch by what that looks like
elsewhere in the same data: it agrees badly everywhere, or loses agreement for a while and finds it again unshifted.
Not covered: another tokenisation in data whose mismatch is that large anyway; the mismatch comes first then.
"""

from collections.abc import Sequence

import numpy as np

from rlaudit.statistics.correlation import correlation
from rlaudit.tokens.lag_path import LOST_SHARE, Stretch
from rlaudit.tokens.token_batch import TokenBatch

# Of the cost without a shift; more than that is left where the shift is not what is wrong.
COST_LEFT = 0.35
# A correlation of fewer tokens is anything.
FEWEST_LOST = 8
# Between unrelated tokens (0, give or take 1 / sqrt(8)) and two engines that differ much and find the same ones hard.
LOST_CORRELATION = 0.35
# Fewer, in units of what looks alike and is no such failure, are taken for chance.
BY_CHANCE = 0.25


def lost_agreement(paths: Sequence[Sequence[Stretch]], part: TokenBatch, unrelated: float) -> set[tuple[int, int]]:
    """(place of the sequence, first token) of stretches that lost an agreement which was there before.

    Engines that differ much disagree for a while too. They agree little elsewhere, and agree again unshifted; where
    few of such stretches look like other tokens to the end of their sequence, those do so by chance.
    """
    unshifted = [stretch for path in paths for stretch in path if stretch.lag == 0 and stretch.tokens]
    weights = [stretch.tokens for stretch in unshifted]
    agreed = float(np.average([stretch.cost for stretch in unshifted], weights=weights)) if weights else 0.0
    apart, for_good, lost = 0, 0, set()
    for place, path in enumerate(paths):
        for number, stretch in enumerate(path):
            if stretch.lag is not None or stretch.tokens < FEWEST_LOST:
                continue
            apart += 1
            far = stretch.cost_unshifted >= LOST_SHARE * unrelated and agreed <= COST_LEFT * stretch.cost_unshifted
            if far and _unlike(stretch, part, place):
                lost.add((place, stretch.first))
                for_good += all(later.lag != 0 for later in path[number + 1 :])
    return lost if for_good and for_good >= BY_CHANCE * apart else set()


def _unlike(stretch: Stretch, part: TokenBatch, place: int) -> bool:
    """Two engines that only differ, however much, still find the same tokens hard."""
    rows = slice(part.offsets[place] + stretch.first, part.offsets[place] + stretch.end)
    rollout_T, trainer_T = part.rollout_logprobs_T[rows], part.trainer_logprobs_T[rows]
    usable_T = np.isfinite(rollout_T) & np.isfinite(trainer_T)
    found = correlation(rollout_T[usable_T], trainer_T[usable_T])
    return found is not None and found < LOST_CORRELATION
