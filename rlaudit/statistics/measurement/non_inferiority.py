"""Is one arm farther from the trainer than another was? Only a ratio can say: what is far depends on the dtype.

    used = metric(candidate) / (TIMES x metric(reference) + floor)

Above 1 the candidate is farther than the reference allows; its interval decides. One figure holds the relative margin
and the absolute one, and it is defined for a reference of 0. The interval is made on the logarithm.

Covered: arms over the same prompts, whose rows are resampled together; and arms over other prompts, each resampled by
itself. The tokens are never the same: two engines sample differently, so it is their averages that are compared.
Not covered: whether the reference is any good; see `diagnosis/distance.py`.

`python -m evidence.benchmarks.distance_verdicts` in .ci prints how often the interval holds the truth and how often a
verdict is wrong.
Why the logarithm: in the simulations there (200 each) the studentised logarithm held the truth in .925 to .955, the
ratio itself in .93 to .95 with a lower end that a noisy reference drags down, the difference metric(candidate) - TIMES
x metric(reference) in .865 to .94, and BCa of the ratio in .90 to .925.
"""

import math
from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.layers import Verdict
from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.measurement.contrast import judge, side_by_side
from rlaudit.statistics.measurement.measure import Tally
from rlaudit.statistics.measurement.metric import Metric
from rlaudit.statistics.resample import FEWEST_CLUSTERS, LEVEL, REPLICATES
from rlaudit.text.counted import counted

# Between what changing nothing of substance does to a mean squared log ratio and what the smallest known defect does:
# tensor parallelism of 4 instead of 8 moves it by 1.10 (mean |d| .0133 and .0127, vime issue 64), a float32 head on one
# side by 1.62 to 1.78 (RMS .0390 to .0408 against .0306, Fast-LLM pull request 525). Their geometric mean is 1.33.
TIMES = 1.3
# What an arm that equals its trainer bit by bit is taken to use, so that it has a logarithm.
LEAST_USED = 1e-9
# The largest logarithm of an end that is reported: one absurd token makes an interval reach beyond any float.
LARGEST_LOG = 700.0


@dataclass(frozen=True)
class NonInferiority:
    """How much of what the reference allows the candidate uses, with its interval; None with a `reason`.

    candidate, reference: the metric over the prompts used. floor: in its unit. paired: by prompt. clusters, sequences:
    of the smaller arm. ratio: how many times as far as the reference; None if that is at 0. allowed: the margin in the
    metric's unit. verdict: MATCH if it is surely no farther than allowed, MISMATCH if it is surely farther.
    """

    metric: str
    candidate: float | None
    reference: float | None
    times: float
    floor: float
    used: float | None
    low: float | None
    high: float | None
    clusters: int
    sequences: int
    paired: bool
    interval: str
    level: float
    reliable: bool
    reason: str | None
    ratio: float | None
    allowed: float | None
    verdict: Verdict


def non_inferiority(
    candidate: Tally,
    reference: Tally,
    metric: Metric,
    floor: float,
    *,
    times: float = TIMES,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = LEVEL,
) -> NonInferiority:
    """Compare `metric`, which is never negative, of one arm with another whose prompts are numbered alike.

    floor: what does not matter beside any reference, in the metric's unit. Paired if enough prompts are shared.
    Raises ValueError unless floor > 0.
    """
    if not floor > 0:
        raise ValueError(f"the k3 that does not matter must be above 0: found {floor}")
    both = side_by_side(candidate, reference, metric, FEWEST_CLUSTERS)

    def log_used_of(sums: Floats) -> Floats:
        used = both.first_of(sums) / (times * both.second_of(sums) + floor)
        log_used: Floats = np.log(np.maximum(used, LEAST_USED))
        return log_used

    interval = both.interval_of(log_used_of, IntervalMethod.STUDENTISED, replicates, seed, level)
    low, high = (None if end is None else math.exp(min(end, LARGEST_LOG)) for end in (interval.low, interval.high))
    reliable = interval.reliable and _too_few(both.clusters) is None
    first, second = both.first, both.second
    return NonInferiority(
        metric=metric.name,
        candidate=first,
        reference=second,
        times=times,
        floor=floor,
        used=None if both.missing else float(np.exp(log_used_of(both.sums_PJ.sum(axis=0)))),
        low=low,
        high=high,
        clusters=both.clusters,
        sequences=both.sequences,
        paired=both.paired,
        interval=interval.method,
        level=level,
        reliable=reliable,
        reason=both.missing or _too_few(both.clusters) or interval.reason,
        ratio=first / second if first is not None and second else None,
        allowed=None if second is None else times * second + floor,
        verdict=judge(low, high, 1.0, reliable=reliable),
    )


def _too_few(clusters: int) -> str | None:
    """Say that the prompts are too few, if they are. Unpaired arms fill twice as many rows as either has prompts."""
    return f"{counted(clusters, 'prompt')}, below {FEWEST_CLUSTERS}" if clusters < FEWEST_CLUSTERS else None
