"""Everything that is drawn of one arm's tokens, added up in one pass over them.

Covered: tokens that have a finite log ratio. Not covered: tokens outside what a replaying trainer keeps, which have
none; the report counts them.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlaudit.arrays import Floats
from rlaudit.tokens.figures.four_digits import four_digits
from rlaudit.tokens.figures.grouped_sizes import ENTROPY_LIMITS, POSITION_LIMITS, GroupedSizes
from rlaudit.tokens.figures.log_bins import SIZES, signed_counts, signed_limits, size_bins
from rlaudit.tokens.figures.probability_pairs import ProbabilityPairs
from rlaudit.tokens.figures.version_lags import VersionLags


class TokenFigures:
    """The figures of one arm, or of one table of logged tokens."""

    def __init__(self, name: str, block: str | None = None) -> None:
        self._name, self._block = name, block
        self._tokens = 0
        self._density = np.zeros(2 * SIZES + 1, dtype=np.int64)
        self._by_position = GroupedSizes(POSITION_LIMITS)
        self._by_entropy: GroupedSizes | None = None
        self._probabilities = ProbabilityPairs()
        self._lags: VersionLags | None = None

    def add(
        self,
        rollout_logprobs_T: Floats,
        trainer_logprobs_T: Floats,
        position_T: ArrayLike,
        entropy_T: ArrayLike | None = None,
    ) -> None:
        """One batch of tokens; logprobs and entropy in nats."""
        kept_T = np.isfinite(rollout_logprobs_T) & np.isfinite(trainer_logprobs_T)
        rollout_T, trainer_T = rollout_logprobs_T[kept_T], trainer_logprobs_T[kept_T]
        log_ratio_T = trainer_T - rollout_T
        self._tokens += int(kept_T.sum())
        size_T = size_bins(log_ratio_T)
        self._density += signed_counts(log_ratio_T, size_T)
        self._by_position.add(log_ratio_T, size_T, np.asarray(position_T, dtype=np.float64)[kept_T])
        self._probabilities.add(rollout_T, trainer_T)
        if entropy_T is not None:
            self._by_entropy = self._by_entropy or GroupedSizes(ENTROPY_LIMITS)
            self._by_entropy.add(log_ratio_T, size_T, np.asarray(entropy_T, dtype=np.float64)[kept_T])

    def add_lags(self, log_ratio_T: Floats, lag_T: Floats) -> None:
        """Tokens with their lag in versions, NaN where it is not known; a sample of all will do."""
        known_T = np.isfinite(log_ratio_T) & np.isfinite(lag_T)
        self._lags = self._lags or VersionLags()
        self._lags.add(log_ratio_T[known_T], lag_T[known_T].astype(np.int64))

    def as_dict(self) -> dict[str, Any]:
        """An entry of the report's `token_figures`; what the tokens do not tell is null."""
        return {
            "name": self._name,
            "block": self._block,
            "tokens": self._tokens,
            "log_ratio": [
                [four_digits(limit) for limit in signed_limits(place)] + [int(self._density[place])]
                for place in np.flatnonzero(self._density).tolist()
            ],
            "by_position": self._by_position.as_list(),
            "by_entropy": self._by_entropy.as_list() if self._by_entropy else None,
            "probabilities": self._probabilities.as_dict(),
            "lags": self._lags.as_list() if self._lags else None,
        }
