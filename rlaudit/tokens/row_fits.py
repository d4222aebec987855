"""Which rows of the rollout fit the trainer's row of another sequence far better than their own.

Covered: whole rows in another order on one side, from the first token on, also among samples that begin alike. Rows
that fit none of their batch are kept, MOST of a log, and compared with those of other batches and files at its end. A
row is compared by its first tokens, at lag 0.
Not covered: rows that are not in the log, or behind the first MOST that are apart, rows that are shifted as well, and
what one row saves by chance: few tokens, or tokens that are nearly certain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.tokens.lag_path import CAP_NATS, COST_LEFT, FEWEST_LOST, LOST_SHARE, unrelated_cost
from rlaudit.tokens.token_batch import TokenBatch

# What another row has to save, beside the logarithm of the rows tried: as a change of lag has to (alignment.py).
SAVED_NATS = 9.0
COMPARED = 128
# The last tokens that both rows have: samples of one prompt that begin alike fit each other's rows up to their fork.
LAST = 16
# Rows of a batch that are compared with each other; more cost their square.
MOST = 512
FEWEST_SUSPECTS = 2


@dataclass(frozen=True, eq=False)
class Rows:
    """The first logprobs of N sequences on both sides, (N, COMPARED), as `_rows` gives them."""

    rollout_NL: Floats
    trainer_NL: Floats

    def __add__(self, other: "Rows") -> "Rows":
        """Return the first MOST of both."""
        sides = ((self.rollout_NL, other.rollout_NL), (self.trainer_NL, other.trainer_NL))
        return Rows(*(np.concatenate(side)[:MOST] for side in sides))


NO_ROWS_APART = Rows(np.empty((0, COMPARED)), np.empty((0, COMPARED)))


@dataclass(frozen=True)
class RowFits:
    """How many rows a batch has, have nothing in common with their own to the end, and fit another; counts add up."""

    sequences: int = 0
    looked_for: int = 0
    fitting: int = 0
    # Rows that were looked for in their own batch, and fit none of it.
    unmet: Rows = field(default=NO_ROWS_APART, repr=False, compare=False)

    def __add__(self, other: "RowFits") -> "RowFits":
        """Return the counts of both."""
        return RowFits(
            self.sequences + other.sequences,
            self.looked_for + other.looked_for,
            self.fitting + other.fitting,
            self.unmet + other.unmet,
        )

    def met(self) -> "RowFits":
        """Return the counts after the unmet rows of all batches were compared with each other."""
        fitting = len(_fits(self.unmet))
        return replace(self, fitting=self.fitting + fitting, unmet=NO_ROWS_APART)


NO_ROWS = RowFits()


def rows_of_others(batch: TokenBatch, suspects: Sequence[int]) -> tuple[RowFits, list[int]]:
    """Return the counts of a batch, and its sequences that fit the trainer's row of another.

    suspects: sequences whose two sides differ by more than engines do.
    """
    if len(suspects) < FEWEST_SUSPECTS:
        return RowFits(batch.sequences), []
    part = batch.take(suspects)
    rollout_SL, trainer_SL = _rows(part, part.rollout_logprobs_T), _rows(part, part.trainer_logprobs_T)
    own_S, tokens_S = _costs(rollout_SL, trainer_SL)
    unrelated = unrelated_cost(batch.rollout_logprobs_T, batch.trainer_logprobs_T)
    # A row that is less apart has nothing to save.
    candidates = np.flatnonzero((tokens_S >= FEWEST_LOST) & (own_S * tokens_S >= SAVED_NATS)).tolist()
    apart = [s for s in candidates if _last(rollout_SL[s], trainer_SL[s]) >= LOST_SHARE * unrelated][:MOST]
    rows = Rows(rollout_SL[apart].astype(np.float32), trainer_SL[apart].astype(np.float32))
    fits = _fits(rows)
    rest = np.setdiff1d(np.arange(len(apart)), fits)
    unmet = Rows(rows.rollout_NL[rest], rows.trainer_NL[rest])
    return RowFits(batch.sequences, len(apart), len(fits), unmet), [suspects[apart[place]] for place in fits]


def _fits(rows: Rows) -> list[int]:
    """Return which rollouts fit the trainer's row of another far better than their own."""
    fitting = []
    own_N, _ = _costs(rows.rollout_NL, rows.trainer_NL)
    for place, (rollout_L, own) in enumerate(zip(rows.rollout_NL, own_N.tolist(), strict=True)):
        cost_N, tokens_N = _costs(rollout_L, rows.trainer_NL)
        fits_N = (cost_N <= COST_LEFT * own) & (tokens_N * (own - cost_N) >= SAVED_NATS + math.log(len(own_N)))
        most = COST_LEFT * _last(rollout_L, rows.trainer_NL[place])
        others = np.flatnonzero(fits_N & (tokens_N >= FEWEST_LOST)).tolist()
        if any(_last(rollout_L, rows.trainer_NL[other]) <= most for other in others):
            fitting.append(place)
    return fitting


def _last(rollout_L: Floats, trainer_L: Floats) -> float:
    """Return what two rows differ by in the last tokens that both have."""
    last = np.flatnonzero(np.isfinite(rollout_L) & np.isfinite(trainer_L))[-LAST:]
    return float(_costs(rollout_L[last], trainer_L[None, last])[0][0])


def _rows(batch: TokenBatch, logprobs_T: Floats) -> Floats:
    """Return (S, COMPARED), the first logprobs of each sequence; NaN past its end, and for 0, which may be put in."""
    place_T = np.arange(batch.tokens) - batch.offsets[:-1][batch.sequence_T]
    rows_SL = np.full((batch.sequences, COMPARED), np.nan)
    kept_T = (place_T < COMPARED) & (logprobs_T != 0.0)
    rows_SL[batch.sequence_T[kept_T], place_T[kept_T]] = logprobs_T[kept_T]
    return rows_SL


def _costs(rollout_L: Floats, trainer_NL: Floats) -> tuple[Floats, Floats]:
    """Return (N,) what the two sides differ by, capped nats per token, and how many tokens both have."""
    with np.errstate(invalid="ignore"):
        apart_NL = np.minimum(np.abs(rollout_L - trainer_NL), CAP_NATS)
    both_NL = np.isfinite(apart_NL)
    tokens_N = both_NL.sum(axis=-1).astype(np.float64)
    return np.where(both_NL, apart_NL, 0.0).sum(axis=-1) / np.maximum(tokens_N, 1.0), tokens_N
