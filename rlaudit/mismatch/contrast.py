"""The difference of one metric between two arms over the same prompts, and what may be concluded from it.

Covered: paired intervals: a replicate draws the same prompts in both arms, so what prompts contribute to
both cancels.
Not covered: arms over different prompts; only the prompts present in both are used, and the result says
how many.

An effect is convicted by size and not only by an interval that excludes 0: verdicts are taken against an
equivalence margin, and the effect of a factor is stated as a share of the excess it had to explain.
"""

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from rlaudit.layers import Verdict
from rlaudit.mismatch.bootstrap import LEVEL, REPLICATES, cluster_weights, interval
from rlaudit.mismatch.evidence import Tally, tally
from rlaudit.mismatch.metric import Metric, ObjectiveSettings
from rlaudit.mismatch.pairs import Floats, Integers, LogprobPairs


@dataclass(frozen=True)
class Contrast:
    """metric(a) - metric(b), paired by prompt.

    first, second: the metric of a and of b over the shared prompts. share, share_low, share_high: the
    difference in units of the excess that was given, None where none was given or it is not above 0. None
    values have a `reason`.
    """

    metric: str
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    share: float | None
    share_low: float | None
    share_high: float | None
    clusters: int
    sequences: int
    interval: str
    level: float
    reliable: bool
    reason: str | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, without NaN or infinities."""
        return asdict(self)


def contrast(
    pairs_a: LogprobPairs,
    pairs_b: LogprobPairs,
    metric: Metric,
    settings: ObjectiveSettings | None = None,
    *,
    excess: float | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = LEVEL,
) -> Contrast:
    """Paired difference of `metric` between two arms whose prompts are numbered alike.

    excess: what there was to explain, usually metric(candidate) - metric(reference); gives the share.
    Raises ValueError when one of the arms is not comparable (see `integrity_faults`).
    """
    tally_a, tally_b = tally(pairs_a, [metric], settings), tally(pairs_b, [metric], settings)
    return contrast_tallies(tally_a, tally_b, metric, excess=excess, replicates=replicates, seed=seed, level=level)


def contrast_tallies(
    tally_a: Tally,
    tally_b: Tally,
    metric: Metric,
    *,
    excess: float | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = LEVEL,
) -> Contrast:
    """`contrast` from the tallies of both arms."""
    tokens_a, tokens_b = _padded(tally_a.tokens_P, tally_b.tokens_P)
    shared = (tokens_a > 0) & (tokens_b > 0)
    clusters = int(shared.sum())
    sequences_a, sequences_b = _padded(tally_a.sequences_P, tally_b.sequences_P)
    sequences = int(min(sequences_a[shared].sum(), sequences_b[shared].sum()))
    missing = tally_a.unavailable.get(metric.name) or tally_b.unavailable.get(metric.name)
    if missing is None and not clusters:
        missing = "the arms share no prompt"
    if missing is not None:
        return _undefined(metric, clusters, sequences, level, missing)
    columns_a = tally_a.sums[metric.columns][np.flatnonzero(shared)]
    columns_b = tally_b.sums[metric.columns][np.flatnonzero(shared)]
    split = columns_a.shape[1]

    def difference_of(sums: Floats) -> Floats:
        return metric.combine(sums[..., :split]) - metric.combine(sums[..., split:])

    sums_PJ = np.concatenate([columns_a, columns_b], axis=1)
    first, second = (float(metric.combine(columns.sum(axis=0))) for columns in (columns_a, columns_b))
    if not (math.isfinite(first) and math.isfinite(second)):
        return _undefined(metric, clusters, sequences, level, "undefined for these tokens")
    found = interval(
        sums_PJ,
        cluster_weights(clusters, replicates, seed),
        difference_of,
        metric.interval,
        sequences=sequences,
        level=level,
    )
    return Contrast(
        metric=metric.name,
        first=first,
        second=second,
        difference=first - second,
        low=found.low,
        high=found.high,
        share=share(first - second, excess),
        share_low=share(found.low, excess),
        share_high=share(found.high, excess),
        clusters=clusters,
        sequences=sequences,
        interval=found.method,
        level=level,
        reliable=found.reliable,
        reason=found.reason,
    )


def share(difference: float | None, excess: float | None) -> float | None:
    """The difference in units of the excess to explain; None unless both are known and the excess above 0."""
    if difference is None or excess is None or not excess > 0:
        return None
    return difference / excess


def judge(low: float | None, high: float | None, margin: float, *, reliable: bool = True) -> Verdict:
    """Match, mismatch or inconclusive, by an interval against the equivalence margin `margin` > 0.

    Within [-margin, margin]: match. Beyond it: mismatch. Otherwise, or without an interval: inconclusive.
    An unreliable interval never acquits, and convicts only when it would do so at twice its width.
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


def tokens_needed(kl: float, difference: float, level: float = LEVEL, power: float = 0.8) -> int:
    """Tokens that show a `difference` of the mean ratio at a mismatch of `kl` nats with probability `power`.

    The variance of the ratio is about 2 KL per token, so N = (z_level + z_power)² 2 KL / difference²: 15.7
    KL / difference² by default. Tokens count as independent, which under honesty they are for this one
    statistic; multiply for others. Raises ValueError unless kl >= 0 and difference > 0.
    """
    if kl < 0 or not difference > 0:
        raise ValueError(f"expected kl >= 0 and difference > 0: found {kl} and {difference}")
    normal = NormalDist()
    reach = normal.inv_cdf(0.5 + level / 2.0) + normal.inv_cdf(power)
    return math.ceil(reach * reach * 2.0 * kl / (difference * difference))


def _padded(first_P: Integers, second_P: Integers) -> tuple[Integers, Integers]:
    prompts = max(first_P.size, second_P.size)
    return np.pad(first_P, (0, prompts - first_P.size)), np.pad(second_P, (0, prompts - second_P.size))


def _undefined(metric: Metric, clusters: int, sequences: int, level: float, reason: str) -> Contrast:
    return Contrast(
        metric=metric.name,
        first=None,
        second=None,
        difference=None,
        low=None,
        high=None,
        share=None,
        share_low=None,
        share_high=None,
        clusters=clusters,
        sequences=sequences,
        interval="none",
        level=level,
        reliable=False,
        reason=reason,
    )
