"""The difference of one metric between two arms over the same prompts, and what may be concluded from it.

Covered: paired intervals: each bootstrap replicate draws the same prompts in both arms, so what prompts contribute to
both cancels. Only the prompts present in both are used, and the result says how many. `side_by_side` puts arms over
different prompts together as well, for `non_inferiority.py`, whose arms need not share any.

An effect counts by size and not only by an interval that excludes 0: verdicts are taken against an
equivalence margin.
"""

from dataclasses import dataclass, replace

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.layers import Verdict
from rlaudit.statistics.interval import Interval, IntervalMethod, interval
from rlaudit.statistics.measurement.measure import Tally, tally
from rlaudit.statistics.measurement.metric import Metric, ObjectiveSettings
from rlaudit.statistics.resample import LEVEL, REPLICATES, Statistic, cluster_weights
from rlaudit.tokens.pairs import LogprobPairs


@dataclass(frozen=True)
class Contrast:
    """metric(a) - metric(b), paired by prompt.

    first, second: the metric of a and of b over the shared prompts. None values have a `reason`.
    """

    metric: str
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    clusters: int
    sequences: int
    interval: str
    level: float
    reliable: bool
    reason: str | None


def contrast(
    pairs_a: LogprobPairs,
    pairs_b: LogprobPairs,
    metric: Metric,
    settings: ObjectiveSettings | None = None,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = LEVEL,
) -> Contrast:
    """Return the paired difference of `metric` between two arms whose prompts are numbered alike.

    Raises ValueError if one of the arms is not comparable (see `integrity_fault`).
    """
    both = side_by_side(tally(pairs_a, [metric], settings), tally(pairs_b, [metric], settings), metric)

    def difference_of(sums: Floats) -> Floats:
        return both.first_of(sums) - both.second_of(sums)

    ends = both.interval_of(difference_of, metric.interval, replicates, seed, level)
    first, second = both.first, both.second
    return Contrast(
        metric=metric.name,
        first=first,
        second=second,
        difference=None if first is None or second is None else first - second,
        low=ends.low,
        high=ends.high,
        clusters=both.clusters,
        sequences=both.sequences,
        interval=ends.method,
        level=level,
        reliable=ends.reliable,
        reason=ends.reason,
    )


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The sums of one metric in two arms, ready to be resampled together."""

    metric: Metric
    # A row for each prompt, the first arm's columns and then the second's.
    sums_PJ: Floats
    # Rows hold both arms of a prompt; otherwise a row holds one arm's and zeros, so that resampling rows resamples each
    # arm by itself.
    paired: bool
    # clusters, sequences: of the smaller arm.
    clusters: int
    sequences: int
    # Why there is nothing to compare; None if there is.
    missing: str | None

    def first_of(self, sums: Floats) -> Floats:
        """Return the metric of the first arm, (..., J) -> (...)."""
        return self.metric.combine(sums[..., : self.sums_PJ.shape[1] // 2])

    def second_of(self, sums: Floats) -> Floats:
        """Return the metric of the second arm, (..., J) -> (...)."""
        return self.metric.combine(sums[..., self.sums_PJ.shape[1] // 2 :])

    @property
    def first(self) -> float | None:
        """The metric of the first arm over the rows; None if there is nothing to compare."""
        return None if self.missing is not None else float(self.first_of(self.sums_PJ.sum(axis=0)))

    @property
    def second(self) -> float | None:
        """The metric of the second arm over the rows; None if there is nothing to compare."""
        return None if self.missing is not None else float(self.second_of(self.sums_PJ.sum(axis=0)))

    def interval_of(
        self, statistic: Statistic, method: IntervalMethod, replicates: int, seed: int, level: float
    ) -> Interval:
        """Return the interval of a statistic of both arms' sums, or why there is none."""
        if self.missing is not None:
            return Interval(None, None, level, "none", False, self.missing)
        weights_BP = cluster_weights(len(self.sums_PJ), replicates, seed)
        return interval(self.sums_PJ, weights_BP, statistic, method, sequences=self.sequences, level=level)


def side_by_side(first: Tally, second: Tally, metric: Metric, fewest_shared: int | None = None) -> SideBySide:
    """Sum both arms over the prompts they share, or each over its prompts if fewer than `fewest_shared` are shared.

    Prompts are numbered alike. Without `fewest_shared` the arms are paired however few prompts they share.
    """
    tokens_a, tokens_b = _padded(first.tokens_P, second.tokens_P)
    sequences_a, sequences_b = _padded(first.sequences_P, second.sequences_P)
    in_a, in_b = tokens_a > 0, tokens_b > 0
    paired = fewest_shared is None or int((in_a & in_b).sum()) >= fewest_shared
    if paired:
        in_a = in_b = in_a & in_b
    clusters = min(int(in_a.sum()), int(in_b.sum()))
    sequences = int(min(sequences_a[in_a].sum(), sequences_b[in_b].sum()))
    missing = first.unavailable.get(metric.name) or second.unavailable.get(metric.name)
    if missing is None and not clusters:
        missing = "the arms share no prompt" if paired else "one of the arms has no token"
    if missing is not None:
        return SideBySide(metric, np.zeros((0, 0)), paired, clusters, sequences, missing)
    sums_a = first.sums[metric.columns][np.flatnonzero(in_a)]
    sums_b = second.sums[metric.columns][np.flatnonzero(in_b)]
    alone = [[sums_a, np.zeros_like(sums_a)], [np.zeros_like(sums_b), sums_b]]
    sums_PJ = np.block([[sums_a, sums_b]] if paired else alone)
    both = SideBySide(metric, sums_PJ, paired, clusters, sequences, None)
    totals_J = sums_PJ.sum(axis=0)
    defined = np.isfinite(both.first_of(totals_J)) and np.isfinite(both.second_of(totals_J))
    return both if defined else replace(both, missing="undefined for these tokens")


def judge(low: float | None, high: float | None, margin: float, *, reliable: bool = True) -> Verdict:
    """Judge an interval by the equivalence margin `margin` > 0.

    Within [-margin, margin]: match. Beyond it: mismatch. Otherwise, or without an interval: inconclusive.
    An unreliable interval shows no match, and a mismatch only if it would do so at twice its width.
    """
    if not margin > 0:
        raise ValueError(f"an equivalence margin must be above 0: found {margin}")
    if low is None or high is None:
        return Verdict.INCONCLUSIVE
    if not reliable:
        stretch = (high - low) / 2.0
        beyond = low - stretch > margin or high + stretch < -margin
        return Verdict.MISMATCH if beyond else Verdict.INCONCLUSIVE
    if -margin <= low and high <= margin:
        return Verdict.MATCH
    return Verdict.MISMATCH if low > margin or high < -margin else Verdict.INCONCLUSIVE


def _padded(first_P: Integers, second_P: Integers) -> tuple[Integers, Integers]:
    prompts = max(first_P.size, second_P.size)
    return np.pad(first_P, (0, prompts - first_P.size)), np.pad(second_P, (0, prompts - second_P.size))
