"""The one cluster resampler: what chance could have made of a figure, and the guards against too few clusters.

Tokens of one completion are not independent, and neither are siblings: prompts are. So tokens are summed by prompt
once, whole prompts are drawn again, and no figure is believed that a part of the prompts turns. What names a cause
passes through here, in one of three ways:

    replicates   `Resampled`: the spread of a figure over prompts drawn again, with percentiles and p-values
    left out     `sums_left`: the figure without each part of the prompts
    score        `standard_score`: how many standard errors a figure lies from what was expected of it

A single prompt has no error: what its resamples differ by is the order in which a processor sums (OpenBLAS has other
kernels for Haswell, Zen and SkylakeX), so its score is 0. Several prompts that all say the same are evidence,
however small the error came out: it counts as what rounding leaves of the estimate. The error of few prompts is itself
a guess, so chance is Student's with one degree of freedom less than there are prompts.

Left out: prompts are dealt into at most MOST_PARTS parts, and a verdict that is not the same without each of them is
open. Two tables that differ in one row have the same rest once the part of that row is left out, and what is surely
said of one of them is true of that rest. So no row can make opposite statements of the two possible.

Sources: Davison & Hinkley, "Bootstrap Methods and their Application" (1997); Cameron, Gelbach & Miller,
"Bootstrap-Based Improvements for Inference with Clustered Errors" (2008), section 2; for the parts that are left out
Broderick, Giordano & Meager, "An Automatic Finite-Sample Robustness Metric" (2020).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from rlaudit.arrays import ROUNDING, Floats, Integers

REPLICATES = 2000
LEVEL = 0.95
# Standard errors that an interval of that level reaches to either side of a normal variable.
REACH = 1.96
# Standard errors beyond which it lies to one side with 5 %.
REACH_TO_ONE_SIDE = 1.645
# With fewer an interval is given and called unreliable: coverage falls below nine in ten (table in `interval.py`).
FEWEST_SEQUENCES = 32
FEWEST_CLUSTERS = 16
# With fewer prompts each sequence counts as a cluster. The trade: siblings are not independent, but a third of an error
# that fewer than eight prompts give is chance.
FEWEST_PROMPTS = 8
# The trade: more parts cost as many more evaluations, fewer take more than a sixtieth of the data out at a time.
MOST_PARTS = 64
# Replicates converted to float at a time: bounds the memory, not the result.
_BLOCK = 256

Weights = NDArray[np.uint16]
Statistic = Callable[[Floats], Floats]


def cluster_sums(columns: Sequence[NDArray[Any]], cluster: Integers, clusters: int) -> Floats:
    """Return (P, J) sums of J columns (N,) by the cluster of each row: all that a bootstrap needs of the tokens."""
    sums = [np.bincount(cluster, column, minlength=clusters) for column in columns]
    return np.stack(sums, axis=1).astype(np.float64)


def clusters_of(prompt_S: Integers) -> Integers:
    """Return (S,) the cluster of each sequence: its prompt, numbered without gaps; itself if prompts are too few."""
    _, compact_S = np.unique(prompt_S, return_inverse=True)
    few = int(compact_S.max(initial=-1)) + 1 < FEWEST_PROMPTS
    return np.arange(len(prompt_S)) if few else compact_S.astype(np.int64)


def cluster_weights(clusters: int, replicates: int = REPLICATES, seed: int = 0) -> Weights:
    """Return (B, P) how often each cluster is drawn in each replicate; rows sum to P.

    The same arguments give the same weights, so that two arms over the same prompts are resampled together.
    """
    rng = np.random.default_rng(seed)
    weights = np.zeros((replicates, clusters), dtype=np.uint16)
    for first in range(0, replicates, _BLOCK):
        rows = min(_BLOCK, replicates - first)
        drawn = rng.integers(0, clusters, size=(rows, clusters)) + clusters * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * clusters)
        weights[first : first + rows] = counts.reshape(rows, clusters)
    return weights


def replicate_sums(weights_BP: Weights, sums_PJ: Floats) -> Floats:
    """Return (B, J) the column sums of every replicate."""
    blocks = [
        weights_BP[first : first + _BLOCK].astype(np.float64) @ sums_PJ for first in range(0, len(weights_BP), _BLOCK)
    ]
    return np.concatenate(blocks)


def replicate_together(weights_BP: Weights, sums: Sequence[Floats]) -> list[Floats]:
    """Return `replicate_sums` of several (P, J), each with its J, in one pass over the weights."""
    if not sums:
        return []
    ends = np.cumsum([sums_PJ.shape[1] for sums_PJ in sums])
    return np.split(replicate_sums(weights_BP, np.concatenate(sums, axis=1)), ends[:-1], axis=1)


def part_of(clusters: int) -> Integers:
    """Return (P,) the part of each prompt; up to MOST_PARTS prompts each is a part by itself."""
    return np.arange(clusters) % MOST_PARTS


def sums_left(sums_PJ: Floats) -> Floats:
    """Return (K, J) column sums over the prompts that are left when each part is out."""
    parts = np.zeros((min(len(sums_PJ), MOST_PARTS), sums_PJ.shape[1]))
    np.add.at(parts, part_of(len(sums_PJ)), sums_PJ)
    # Not total - part: where one part holds nearly all, the difference would be rounding.
    before = np.concatenate([np.zeros((1, sums_PJ.shape[1])), np.cumsum(parts, axis=0)[:-1]])
    after = np.concatenate([np.cumsum(parts[::-1], axis=0)[::-1][1:], np.zeros((1, sums_PJ.shape[1]))])
    left: Floats = before + after
    return left


@dataclass(frozen=True, eq=False)
class Resampled:
    """A figure, what it is in every replicate (B,), and what it is without each part of its clusters (K,)."""

    value: float
    values_B: Floats
    left_K: Floats
    clusters: int

    def percentiles(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the values between which `level` of the replicates lie."""
        tail = (1.0 - level) / 2.0
        low, high = np.quantile(self.values_B, [tail, 1.0 - tail])
        return float(low), float(high)

    def chances(self, chance: Callable[[float, int], float]) -> tuple[float, Floats]:
        """Return the p-value of 0 by `chance` (score, clusters), and the same without each part."""
        error = float(self.values_B.std(ddof=1))
        whole = chance(standard_score(self.value, error, self.clusters), self.clusters)
        others = self.clusters - 1
        return whole, np.array([chance(standard_score(value, error, others), others) for value in self.left_K.tolist()])


def resampled(sums_PJ: Floats, weights_BP: Weights, statistic: Statistic) -> Resampled:
    """Return `statistic` of the column sums of (P, J), under the draws of `cluster_weights`."""
    value = float(statistic(sums_PJ.sum(axis=0)))
    return Resampled(value, statistic(replicate_sums(weights_BP, sums_PJ)), statistic(sums_left(sums_PJ)), len(sums_PJ))


def ratio(sums: Floats) -> Floats:
    """Return the first sum over the second, which is not negative, (..., 2) -> (...); 0 if the second is 0."""
    quotient: Floats = np.zeros(sums.shape[:-1])
    np.divide(sums[..., 0], sums[..., 1], out=quotient, where=sums[..., 1] > 0)
    return quotient


def unseen(clusters: int, level: float = LEVEL) -> float:
    """Return the largest share of clusters that may have what none of these showed: a fault of whole prompts."""
    return float(1.0 - (1.0 - level) ** (1.0 / clusters))


def holding(low: float, high: float, left_K: Floats) -> tuple[float, float]:
    """Widen an interval to hold the value without each part, which tables that differ in one prompt share."""
    return min(low, float(left_K.min(initial=low))), max(high, float(left_K.max(initial=high)))


def standard_score(value: float, error: float, units: int, expected: float = 0.0) -> float:
    """Return (value - expected) / error. units: how many prompts or tokens are behind the error; below two it is 0."""
    least = ROUNDING * max(abs(value), abs(expected))
    error = max(error, least)
    return (value - expected) / error if units > 1 and error > 0 else 0.0


def chance_above(score: float, units: int) -> float:
    """Return the one-sided p-value of a score whose error comes from so many independent units; 1 below two."""
    return float(stdtr(units - 1, -score)) if units > 1 else 1.0


def chance_apart(score: float, units: int) -> float:
    """Return the two-sided p-value, 0 to 1."""
    return min(1.0, 2.0 * chance_above(abs(score), units))


def ln_chance_apart(score: float, units: int) -> float:
    """Return the natural logarithm of the two-sided p-value; no less than that of the smallest float."""
    return math.log(max(chance_apart(score, units), math.ulp(0.0)))
