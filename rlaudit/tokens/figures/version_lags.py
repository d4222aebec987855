"""How many tokens were sampled by weights that are how many updates older than the trainer's."""

from typing import Any

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.figures.four_digits import four_digits

# Lags beyond this are one group: a run that is this far off-policy is read by its mean, not by its lags.
FURTHEST = 64


class VersionLags:
    """Adds up tokens and |d| by lag, trainer version minus rollout version."""

    def __init__(self) -> None:
        self._tokens = np.zeros(FURTHEST + 2, dtype=np.int64)
        self._sums = np.zeros(FURTHEST + 2)

    def add(self, log_ratio_T: Floats, lag_T: Integers) -> None:
        """lag_T: whole numbers; negative ones, which no clock allows, are counted as one group before 0."""
        place_T = np.clip(lag_T, -1, FURTHEST) + 1
        self._tokens += np.bincount(place_T, minlength=FURTHEST + 2)
        self._sums += np.bincount(place_T, np.abs(log_ratio_T), minlength=FURTHEST + 2)

    def as_list(self) -> list[dict[str, Any]]:
        """A row for each lag that has tokens."""
        return [
            {
                "lag": place - 1,
                "tokens": int(self._tokens[place]),
                "mean": four_digits(self._sums[place] / self._tokens[place]),
            }
            for place in np.flatnonzero(self._tokens).tolist()
        ]
