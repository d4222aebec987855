"""Lags of more than three tokens, tried where two sides of a sequence agree at none of the near ones (`lag_path.py`).

Covered: one lag of up to MOST tokens over a whole stretch, as of a prompt's end that one side places elsewhere.
Not covered: stretches that are shorter than twice the lag, and several far lags one after the other.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rlaudit.tokens.lag_path import CHANGE_NATS, FEWEST_LOST, LAGS, LOST_SHARE, Stretch, lag_fit
from rlaudit.tokens.token_batch import TokenBatch

MOST = 32
FAR = tuple(sign * lag for lag in range(max(LAGS) + 1, MOST + 1) for sign in (1, -1))
# As many paid for a near lag (alignment.py), and for the choice among so many.
SAVED_NATS = CHANGE_NATS + 4.0 + math.log(len(FAR))
# From here on only lags are tried that were found in sequences before: a log is shifted by one lag or a few.
TRIED_IN_FULL = 64


def with_far_lags(paths: Sequence[list[Stretch]], part: TokenBatch, unrelated: float) -> list[list[Stretch]]:
    """Return the paths, with a far lag in place of stretches that agree at it. unrelated: capped nats per token.

    A sequence that is apart is tried as a whole first: its ends have no counterpart, and agree with none by chance.
    """
    seen: Counter[int] = Counter()
    tried, shifted = 0, []
    for place, path in enumerate(paths):
        whole = _whole(path)
        lost = [stretch for stretch in path if stretch.lag is None and stretch.tokens >= FEWEST_LOST]
        apart = whole.cost_unshifted >= LOST_SHARE * unrelated
        lags = FAR if tried < TRIED_IN_FULL else tuple(seen)
        tried += bool(lost) or apart
        at_lag = _at_far_lag(whole, part, place, lags) if apart else None
        moved = [at_lag] if at_lag else [s if s not in lost else _at_far_lag(s, part, place, lags) or s for s in path]
        seen.update(stretch.lag for stretch in moved if stretch.lag in FAR)
        shifted.append(moved)
    return shifted


def _whole(path: Sequence[Stretch]) -> Stretch:
    tokens = sum(stretch.tokens for stretch in path)
    cost = sum(stretch.tokens * stretch.cost_unshifted for stretch in path) / max(tokens, 1)
    return Stretch(path[0].first, path[-1].end, 0, cost, cost, tokens)


def _at_far_lag(stretch: Stretch, part: TokenBatch, place: int, lags: Sequence[int]) -> Stretch | None:
    """Return the stretch at the far lag at which it agrees best; None if it agrees at none."""
    begin, end = int(part.offsets[place]), int(part.offsets[place + 1])
    rollout_L, trainer_L = part.rollout_logprobs_T[begin:end], part.trainer_logprobs_T[begin:end]
    best: Stretch | None = None
    for lag in lags:
        first, last = max(stretch.first, -lag), min(stretch.end, end - begin - lag)
        if last - first < max(FEWEST_LOST, abs(lag)):
            continue
        fit = lag_fit(rollout_L, trainer_L, stretch.first, stretch.end, lag)
        if fit.tokens >= FEWEST_LOST and fit.saved(SAVED_NATS) and (best is None or fit.cost < best.cost):
            best = replace(stretch, lag=lag, cost=fit.cost, tokens=fit.tokens)
    return best
