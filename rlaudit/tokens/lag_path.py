"""The lag at which two sides of one sequence agree, token by token: a path through lags that seldom changes.

Covered: a shift of a whole sequence, a shift from some place on, several shifts one after the other, and a place from
which no shift brings agreement. Shifts by more than three tokens are tried where there is no agreement (`far_lags.py`).

The path minimises, over all tokens, the difference of the two logprobs at the lag taken (capped, so that one token
cannot pay for a shift) plus a price for every change. That is the maximum a posteriori path of a hidden Markov chain
(Viterbi), and unlike a search for one best lag it says from which token on.

A sequence that agrees at no lag from some place on has other tokens there, or comes from two engines that merely differ
much (other weights, positions that are off from a length on). What was not lost distinguishes the two: other tokens are
lost by sequences whose beginning is as near as an engine is to its trainer, among others that are as near throughout,
and have nothing in common with their counterparts.
Not covered: another tokenisation in data whose mismatch is large anyway; the mismatch comes first then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import ROUNDING, Floats, Integers
from rlaudit.tokens.token_batch import TokenBatch

LAGS = (-3, -2, -1, 0, 1, 2, 3)
LOST = len(LAGS)
CAP_NATS = 2.0
# A change has to save this much: e^-5 is about the chance of one in the hundred tokens of a sequence.
CHANGE_NATS = 5.0
# Of what unrelated tokens differ by; above it the two sides count as unrelated.
LOST_SHARE = 0.6
_MOST_CELLS = 400_000
# Of the cost without a shift; more than that is left where the shift is not what is wrong.
COST_LEFT = 0.35
# A correlation of fewer tokens is anything.
FEWEST_LOST = 8
# Between unrelated tokens (0, give or take 1 / sqrt(8)) and two engines that differ much and find the same ones hard.
LOST_CORRELATION = 0.35
# An engine and its trainer are as near as this, in units of what lost tokens differ by: a tenth is noise of about 0.2
# nats on the logits (k3 0.01).
NEAR = 0.1
# Of what lost tokens differ by. Sequences above it that lost nothing are between near and lost: a few are too short to
# be seen. If they are more than twice as many as those that lost, the lost ones are the far end of a mismatch of all.
# Simulated, 2026-11: rows of others up to 1.6 times as many, a stale prefix or a wrong replica 2.2 to 28 times.
BETWEEN, MOST_BETWEEN = 0.3, 2.0
# Of a sequence, so much is its beginning.
BEGINNING = 0.25
# Nats by which a beginning agrees that is more than a few sure tokens, which agree with any: the price of a change.
BEGINNING_NATS = CHANGE_NATS
# Fewer, in units of what looks alike and is no such failure, are taken for chance.
BY_CHANCE = 0.25
# Of what the trainer's logprobs are elsewhere, on average: rows of others are as likely as any.
MOST_SURPRISE = 2.0
# Of the squares of what sets the sides apart. Bans, filters and other weights have as much, and move what is not lost
# as well: 0.08 to 0.3 of what they differ by there; an engine that was near before is at 0.02 (simulated, 2026-11;
# examples/case-studies/rllm-816-encoded-again).
ONE_WAY, NEAR_ONE_WAY = 0.95, 0.05
FEWEST_PAIRS = 3  # two points always lie on a line


@dataclass(frozen=True)
class Stretch:
    """Tokens first..end-1 of a sequence that agree at `lag`, or at none (None). Costs are capped nats per token."""

    first: int
    end: int
    lag: int | None
    cost: float
    cost_unshifted: float
    # How many of them have a rollout logprob; the others say nothing.
    tokens: int

    @property
    def saved(self) -> float:
        """Nats by which this lag is better than none over the stretch."""
        return self.tokens * (self.cost_unshifted - self.cost)


def unrelated_cost(rollout_T: Floats, trainer_T: Floats) -> float:
    """Return what the logprobs of unrelated tokens differ by, capped nats per token."""
    apart_T = capped(rollout_T, np.roll(trainer_T, 7))
    finite_T = apart_T[~np.isnan(apart_T)]
    return float(finite_T.mean()) if finite_T.size else 0.0


def lag_paths(rollout_T: Floats, trainer_T: Floats, offsets: Integers, unrelated: float) -> list[list[Stretch]]:
    """Return each sequence's stretches in order. offsets: (S + 1,) into the flat logprobs, NaN if missing."""
    lengths_S = np.diff(offsets)
    paths: list[list[Stretch]] = []
    first = 0
    while first < len(lengths_S):
        longest, end = 0, first
        while end < len(lengths_S):
            longest = max(longest, int(lengths_S[end]))
            if end > first and longest * (end + 1 - first) > _MOST_CELLS:
                break
            end += 1
        paths += _paths(rollout_T, trainer_T, offsets[first : end + 1], unrelated)
        first = end
    return paths


def _paths(rollout_T: Floats, trainer_T: Floats, offsets: Integers, unrelated: float) -> list[list[Stretch]]:
    lengths_S = np.diff(offsets)
    longest = int(lengths_S.max(initial=0))
    place_SL = np.arange(longest)[None, :]
    inside_SL = place_SL < lengths_S[:, None]
    rows_SL = np.where(inside_SL, offsets[:-1, None] + place_SL, 0)
    costs = np.full((len(lengths_S), longest, LOST + 1), LOST_SHARE * unrelated, dtype=np.float64)
    for state, lag in enumerate(LAGS):
        has_partner_SL = inside_SL & (place_SL + lag >= 0) & (place_SL + lag < lengths_S[:, None])
        partner_SL = np.where(has_partner_SL, rows_SL + lag, 0)
        apart_SL = capped(rollout_T[rows_SL], trainer_T[partner_SL])
        # A token without a counterpart, or without a logprob, says nothing for or against a lag.
        apart_SL = np.where(np.isnan(apart_SL), LOST_SHARE * unrelated, apart_SL)
        costs[:, :, state] = np.where(has_partner_SL, apart_SL, LOST_SHARE * unrelated)
    scored_SL = inside_SL & ~np.isnan(rollout_T[rows_SL])
    costs[~scored_SL] = 0.0
    states_SL = _cheapest(costs)
    return [
        _stretches(states_SL[s, :length], costs[s, :length], scored_SL[s, :length])
        for s, length in enumerate(lengths_S)
    ]


def _cheapest(costs_SLK: Floats) -> Integers:
    """Return (S, L) states of the cheapest path."""
    sequences, longest, states = costs_SLK.shape
    came_from = np.zeros((sequences, longest, states), dtype=np.int8)
    total_SK = costs_SLK[:, 0].copy()
    # Not to be shifted needs no excuse.
    total_SK[:, [k for k in range(states) if k == LOST or LAGS[k] != 0]] += CHANGE_NATS
    states_K = np.arange(states, dtype=np.int8)
    for place in range(1, longest):
        best_S = total_SK.argmin(axis=1)
        switched_S = total_SK[np.arange(sequences), best_S] + CHANGE_NATS
        stay_SK = total_SK <= switched_S[:, None]
        came_from[:, place] = np.where(stay_SK, states_K, best_S[:, None].astype(np.int8))
        total_SK = np.where(stay_SK, total_SK, switched_S[:, None]) + costs_SLK[:, place]
    states_SL = np.zeros((sequences, longest), dtype=np.int64)
    if longest:
        states_SL[:, -1] = total_SK.argmin(axis=1)
    for place in range(longest - 1, 0, -1):
        states_SL[:, place - 1] = came_from[np.arange(sequences), place, states_SL[:, place]]
    return states_SL


def _stretches(states_L: Integers, costs_LK: Floats, scored_L: NDArray[np.bool_]) -> list[Stretch]:
    edges = [0, *(np.flatnonzero(np.diff(states_L)) + 1).tolist(), len(states_L)]
    return [
        _stretch(first, end, int(states_L[first]), costs_LK, scored_L) for first, end in pairwise(edges) if end > first
    ]


def _stretch(first: int, end: int, state: int, costs_LK: Floats, scored_L: NDArray[np.bool_]) -> Stretch:
    tokens = int(scored_L[first:end].sum())
    cost_K = costs_LK[first:end].sum(axis=0) / max(tokens, 1)
    lag = None if state == LOST else LAGS[state]
    return Stretch(first, end, lag, float(cost_K[state]), float(cost_K[LAGS.index(0)]), tokens)


@dataclass(frozen=True)
class LagFit:
    """What the tokens of a stretch that have a counterpart at a lag say of it. Costs are capped nats per token.

    Text that repeats, or is nearly certain all along, is as near to itself as the trainer's side is to it.
    """

    tokens: int
    cost: float
    cost_unshifted: float
    # Of the rollout against itself at the lag.
    cost_own: float
    # Correlation of both sides at the lag, None of too few tokens.
    alike: float | None

    def saved(self, least: float) -> bool:
        """Return whether the lag saves so many nats, against no lag and against what the rollout has in itself."""
        of_shift, of_repeats = self.cost_unshifted - self.cost, self.cost_own - self.cost
        if self.tokens * min(of_shift, of_repeats) < least or self.cost > COST_LEFT * self.cost_unshifted:
            return False
        return self.alike is None or self.alike >= LOST_CORRELATION


def lag_fit(rollout_L: Floats, trainer_L: Floats, first: int, end: int, lag: int) -> LagFit:
    """Return how the tokens first..end-1 of a sequence fit those of the trainer's side at a lag."""
    first = max(first, -lag)
    end = max(min(end, len(rollout_L) - lag), first)
    here, there = slice(first, end), slice(first + lag, end + lag)
    rollout, trainer = rollout_L[here], trainer_L[there]
    apart = [capped(rollout, other) for other in (trainer, trainer_L[here], rollout_L[there])]
    scored = ~np.isnan(apart).any(axis=0)
    if not scored.any():
        return LagFit(0, 0.0, 0.0, 0.0, None)
    cost, unshifted, own = (float(apart_N[scored].mean()) for apart_N in apart)
    return LagFit(int(scored.sum()), cost, unshifted, own, correlation(rollout[scored], trainer[scored]))


def capped(rollout: Floats, trainer: Floats) -> Floats:
    """Return what two sides differ by, at most CAP_NATS; NaN if one is missing."""
    with np.errstate(invalid="ignore"):
        return np.minimum(np.abs(rollout - trainer), CAP_NATS)


def lost_agreement(
    paths: Sequence[Sequence[Stretch]], batch: TokenBatch, suspects: Sequence[int], unrelated: float
) -> set[tuple[int, int]]:
    """Return (place in `suspects`, first token) of stretches that lost an earlier agreement. paths: of the suspects.

    Engines that differ much disagree for a while too, but they agree little elsewhere, agree again unshifted, and still
    find the same tokens hard. If few of such stretches look like other tokens to the end of their sequence, those do so
    by chance.
    """
    apart, far = 0, []
    for place, path in enumerate(paths):
        for number, stretch in enumerate(path):
            if stretch.lag is not None or stretch.tokens < FEWEST_LOST:
                continue
            apart += 1
            if stretch.cost_unshifted >= LOST_SHARE * unrelated and all(s.lag != 0 for s in path[number + 1 :]):
                far.append((place, stretch))
    if not far or not _near_elsewhere(paths, far, batch, suspects, unrelated):
        return set()
    rows = [
        np.arange(batch.offsets[suspects[place]] + stretch.first, batch.offsets[suspects[place]] + stretch.end)
        for place, stretch in far
    ]
    if not _unlike(np.concatenate(rows), batch):
        return set()
    lost = {
        (place, stretch.first) for (place, stretch), rows_T in zip(far, rows, strict=True) if _unlike(rows_T, batch)
    }
    return lost if len(lost) >= BY_CHANCE * apart else set()


def _near_elsewhere(
    paths: Sequence[Sequence[Stretch]],
    far: Sequence[tuple[int, Stretch]],
    batch: TokenBatch,
    suspects: Sequence[int],
    unrelated: float,
) -> bool:
    """Return whether the two sides are near where nothing was lost: in the same sequences before, and in the others.

    Of others only the beginnings, if agreement is lost on the way: a loss near the end is too short to be seen.
    """
    losing = {place for place, _ in far}
    rows = [
        np.arange(batch.offsets[suspects[place]] + s.first, batch.offsets[suspects[place]] + s.end) for place, s in far
    ]
    near = NEAR_ONE_WAY if _one_way(np.concatenate(rows), batch) else NEAR
    lost = float(np.average([s.cost_unshifted for _, s in far], weights=[s.tokens for _, s in far]))
    most = near * lost
    agreeing = [place for place in losing if agreement_of(paths[place], unrelated) >= BEGINNING_NATS]
    on_the_way = len(agreeing) >= BY_CHANCE * len(losing)
    before = [s for place in agreeing for s in paths[place] if s.lag == 0]
    tokens_before = sum(s.tokens for s in before)
    rest_S = np.ones(batch.sequences, dtype=np.bool_)
    rest_S[[suspects[place] for place, path in enumerate(paths) if any(s.lag != 0 for s in path)]] = False
    rest = batch.take(np.flatnonzero(rest_S))
    apart_T = capped(rest.rollout_logprobs_T, rest.trainer_logprobs_T)
    counted_T = ~np.isnan(apart_T)
    if on_the_way:
        counted_T &= rest.position_T < BEGINNING * rest.lengths_S[rest.sequence_T]
    cost_S, tokens_S = (
        np.bincount(rest.sequence_T[counted_T], weights, rest.sequences) for weights in (apart_T[counted_T], None)
    )
    others_S = cost_S[tokens_S > 0] / tokens_S[tokens_S > 0]
    if not (tokens_before and on_the_way) and not others_S.size:
        return False
    near_before = sum(s.tokens * s.cost_unshifted for s in before) <= most * tokens_before
    # Most of the others: one that lost agreement too late to be seen does not speak for all.
    near_others = not others_S.size or float(np.median(others_S)) <= most
    between = int(np.count_nonzero(others_S > BETWEEN * lost))
    return (near_before or not on_the_way) and near_others and between <= MOST_BETWEEN * len(losing)


def agreement_of(path: Sequence[Stretch], unrelated: float) -> float:
    """Return by how many nats a sequence agrees, where it does, more than unrelated tokens would."""
    return sum(stretch.tokens * (unrelated - stretch.cost) for stretch in path if stretch.lag is not None)


def _unlike(rows_T: Integers, batch: TokenBatch) -> bool:
    """Return whether it is more than a difference: engines that only differ still find the same tokens hard."""
    rollout_T, trainer_T = batch.rollout_logprobs_T[rows_T], batch.trainer_logprobs_T[rows_T]
    usable_T = np.isfinite(rollout_T) & np.isfinite(trainer_T)
    similarity = correlation(rollout_T[usable_T], trainer_T[usable_T])
    return similarity is not None and similarity < LOST_CORRELATION


def _one_way(rows_T: Integers, batch: TokenBatch) -> bool:
    """Return whether the trainer only finds these tokens unlikely, as what was drawn under a ban or through a filter.

    It finds other tokens unlikely, too, where they do not go on as a text does.
    """
    lost_T = np.isin(np.arange(batch.tokens), rows_T)
    usable_T = np.isfinite(batch.rollout_logprobs_T) & np.isfinite(batch.trainer_logprobs_T)
    lost, elsewhere = (batch.trainer_logprobs_T[usable_T & part_T] for part_T in (lost_T, ~lost_T))
    if not lost.size or not elsewhere.size:
        return False
    squared = np.square(lost - batch.rollout_logprobs_T[usable_T & lost_T])
    below = float(squared[lost < batch.rollout_logprobs_T[usable_T & lost_T]].sum())
    surprised = float(lost.mean()) < MOST_SURPRISE * float(elsewhere.mean())
    return surprised and below > ONE_WAY * float(squared.sum())


def correlation(first: Floats, second: Floats) -> float | None:
    """Return Pearson's correlation; None of fewer than three finite pairs, or if a side is constant."""
    if len(first) < FEWEST_PAIRS or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    spreads = []
    for values in (first, second):
        spread = float(values.std())
        if spread <= ROUNDING * float(np.abs(values).max()):
            return None
        spreads.append(spread)
    return float(np.mean((first - first.mean()) * (second - second.mean()))) / (spreads[0] * spreads[1])
