"""|d| of tokens in groups: by their position in the completion, or by how sure the trainer was of the token before
drawing it."""

from typing import Any

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.figures.four_digits import four_digits
from rlaudit.tokens.figures.log_bins import SIZES, quantile

# Positions 0, 1, 2, 3, then two groups for each doubling; the last takes the rest.
POSITION_LIMITS = (0, 1, 2, 3, *(base * 2**power // 2 for power in range(2, 20) for base in (2, 3)))
# Nats. An entropy of 0.01 is a token that could hardly have been another, ln 2 a coin.
ENTROPY_LIMITS = (0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


class GroupedSizes:
    """Adds up tokens, the sum and a histogram of |d| for each group between `limits`."""

    def __init__(self, limits: tuple[float, ...]) -> None:
        self._limits = limits
        self._sums = np.zeros(len(limits))
        self._counts = np.zeros((len(limits), SIZES + 1), dtype=np.int64)

    def add(self, log_ratio_T: Floats, size_T: Integers, values_T: Floats) -> None:
        """size_T: as of `size_bins`. values_T: what the tokens are grouped by; what is not a number is left out."""
        known_T = np.isfinite(values_T)
        if not known_T.all():
            log_ratio_T, size_T, values_T = log_ratio_T[known_T], size_T[known_T], values_T[known_T]
        group_T = np.maximum(np.searchsorted(self._limits, values_T, side="right") - 1, 0)
        groups = len(self._limits)
        self._sums += np.bincount(group_T, np.abs(log_ratio_T), minlength=groups)
        flat = np.bincount(group_T * (SIZES + 1) + size_T, minlength=groups * (SIZES + 1))
        self._counts += flat.reshape(groups, SIZES + 1)

    def as_list(self) -> list[dict[str, Any]]:
        """A row for each group that has tokens: from and below, tokens, mean, median and 90th percentile of |d|."""
        tokens = self._counts.sum(axis=1)
        return [
            {
                "from": self._limits[group],
                "below": self._limits[group + 1] if group + 1 < len(self._limits) else None,
                "tokens": int(tokens[group]),
                "mean": four_digits(self._sums[group] / tokens[group]),
                "median": four_digits(quantile(self._counts[group], 0.5)),
                "p90": four_digits(quantile(self._counts[group], 0.9)),
            }
            for group in np.flatnonzero(tokens).tolist()
        ]
