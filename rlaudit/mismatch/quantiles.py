"""Quantiles of |log ratio| that can be summed: counts per prompt in fixed, logarithmic bins.

A bin is 1.5 % wide, and its geometric middle is reported: the error is below 0.75 % of the value. Exact
zeros have a bin of their own, because a bitwise match is a finding and not a small number. Values below
1e-8 nats (finer than a float32 logprob) are reported as 1e-8, values from 100 nats on as 100.
"""

import math

import numpy as np

from rlaudit.mismatch.metric import Bins, Combine, ObjectiveSettings
from rlaudit.mismatch.pairs import Floats, LogprobPairs

LOWEST, HIGHEST, GROWTH = 1e-8, 100.0, 1.015
_INNER = math.ceil(math.log(HIGHEST / LOWEST) / math.log(GROWTH))
_EDGES: Floats = LOWEST * np.power(GROWTH, np.arange(_INNER + 1, dtype=np.float64))
# zero, below the lowest edge, the inner bins, above the highest
VALUES: Floats = np.concatenate([[0.0, LOWEST], np.sqrt(_EDGES[:-1] * _EDGES[1:]), [HIGHEST]])


def abs_log_ratio_bins(pairs: LogprobPairs, settings: ObjectiveSettings) -> Bins:
    """The bin of |log ratio| of each token."""
    magnitude_T = np.abs(pairs.log_ratio_T)
    bin_T = np.searchsorted(_EDGES, magnitude_T, side="right").astype(np.int64) + 1
    bin_T[magnitude_T == 0] = 0
    return Bins(bin_T, VALUES.size)


def quantile(share: float) -> Combine:
    """Counts (..., J) -> the value that `share` of the tokens do not exceed (the lower one where two
    qualify)."""

    def from_counts(counts: Floats) -> Floats:
        cumulative = np.cumsum(counts, axis=-1)
        total = cumulative[..., -1]
        # Counts are whole numbers, so this slack absorbs the rounding of share * total and moves nothing
        # else.
        reached = cumulative >= (share * total - 1e-6)[..., None]
        return np.where(total > 0, VALUES[np.argmax(reached, axis=-1)], np.nan)

    return from_counts
