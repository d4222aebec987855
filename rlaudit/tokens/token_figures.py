"""Everything that is drawn of one arm's tokens, added up in one pass over them.

Covered: tokens that have a finite log ratio. Not covered: tokens outside what a replaying trainer keeps, which have
none; the report counts them.

Log ratios are counted in fixed bins, ten for each power of ten of |d| on both sides of zero and one for what is zero:
they add up over batches, and one scale shows float32 noise (1e-7) beside a wrong temperature (1).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlaudit.arrays import Floats, Integers

# Lags beyond this are one group: a run that is this far off-policy is read by its mean, not by its lags.
FURTHEST = 64
DRAWN = 300
GROUPS = 10
# Positions 0, 1, 2, 3, then two groups for each doubling; the last takes the rest.
POSITION_LIMITS = (0, 1, 2, 3, *(base * 2**power // 2 for power in range(2, 20) for base in (2, 3)))
# Nats. An entropy of 0.01 is a token that could hardly have been another, ln 2 a coin.
ENTROPY_LIMITS = (0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
PER_DECADE = 10
SMALLEST, LARGEST = -8, 2


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


class ProbabilityPairs:
    """Means in ten groups of the rollout's probability, and `DRAWN` tokens, each as likely as any other."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._keys = np.empty(0)
        self._drawn = np.empty((0, 2))
        self._tokens = np.zeros(GROUPS, dtype=np.int64)
        self._sums = np.zeros((3, GROUPS))

    def add(self, rollout_logprobs_T: Floats, trainer_logprobs_T: Floats) -> None:
        """Logprobs in nats."""
        pairs_T2 = np.exp(np.minimum(np.stack([rollout_logprobs_T, trainer_logprobs_T], axis=1), 0.0))
        group_T = np.minimum((pairs_T2[:, 0] * GROUPS).astype(np.int64), GROUPS - 1)
        self._tokens += np.bincount(group_T, minlength=GROUPS)
        apart_T = np.abs(pairs_T2[:, 1] - pairs_T2[:, 0])
        for place, values_T in enumerate((pairs_T2[:, 0], pairs_T2[:, 1], apart_T)):
            self._sums[place] += np.bincount(group_T, values_T, minlength=GROUPS)
        # Every token gets a random number, and the smallest numbers of all batches are drawn.
        own = self._random.random(len(pairs_T2))
        few = own < (self._keys.max() if self._keys.size == DRAWN else 1.0)
        keys, drawn = np.concatenate([self._keys, own[few]]), np.concatenate([self._drawn, pairs_T2[few]])
        kept = np.argsort(keys, kind="stable")[:DRAWN]
        self._keys, self._drawn = keys[kept], drawn[kept]

    def as_report(self) -> dict[str, Any]:
        """`sample`: [rollout, trainer] of each drawn token; `groups`: means of all tokens."""
        return {
            "sample": [[four_digits(rollout), four_digits(trainer)] for rollout, trainer in self._drawn.tolist()],
            "groups": [
                {
                    "from": group / GROUPS,
                    "below": (group + 1) / GROUPS,
                    "tokens": int(self._tokens[group]),
                    **{
                        name: four_digits(self._sums[place, group] / self._tokens[group])
                        for place, name in enumerate(("rollout", "trainer", "apart"))
                    },
                }
                for group in np.flatnonzero(self._tokens).tolist()
            ],
        }


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


SIZES = (LARGEST - SMALLEST) * PER_DECADE
# (SIZES + 1,) limits of |d|; what is below the first counts as zero, what is above the last as the last.
EDGES: Floats = 10.0 ** (SMALLEST + np.arange(SIZES + 1) / PER_DECADE)


def size_bins(log_ratio_T: Floats) -> Integers:
    """(T,) 0 where |d| is below 1e-8, else 1 + its bin among EDGES."""
    with np.errstate(divide="ignore"):
        decade_T = np.log10(np.abs(log_ratio_T))
    sizes_T: Integers = np.clip(np.floor((decade_T - SMALLEST) * PER_DECADE) + 1, 0, SIZES).astype(np.int64)
    return sizes_T


def signed_counts(log_ratio_T: Floats, size_T: Integers) -> Integers:
    """(2 * SIZES + 1,) tokens in each bin, from the most negative to the most positive. size_T: as of `size_bins`."""
    signed_T = np.where(log_ratio_T < 0, -size_T, size_T)
    return np.bincount(signed_T + SIZES, minlength=2 * SIZES + 1)


def signed_limits(place: int) -> tuple[float, float]:
    """Low and high of a bin of `signed_counts`."""
    number = place - SIZES
    if number == 0:
        return -float(EDGES[0]), float(EDGES[0])
    low, high = float(EDGES[abs(number) - 1]), float(EDGES[abs(number)])
    return (low, high) if number > 0 else (-high, -low)


def quantile(counts: NDArray[np.integer], share: float) -> float:
    """|d| below which `share` of the tokens lie; counts: (SIZES + 1,) as from `size_bins`. Log-linear inside a bin."""
    reached = np.cumsum(counts)
    wanted = share * reached[-1]
    place = int(np.searchsorted(reached, wanted))
    if place == 0:
        return 0.0
    inside = (wanted - reached[place - 1]) / counts[place]
    return float(10.0 ** (SMALLEST + (place - 1 + inside) / PER_DECADE))


def four_digits(value: float) -> float:
    """The value rounded to four significant digits."""
    return float(f"{value:.4g}")


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

    def as_report(self) -> dict[str, Any]:
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
            "probabilities": self._probabilities.as_report(),
            "lags": self._lags.as_list() if self._lags else None,
        }
