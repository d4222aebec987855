"""Effective sample size over sequences, as a share of them, on unclamped product weights exp(sum d).

Covered: how many sequences an unbiased importance-weighted update would really use. Falls with length by itself.
Not covered: a cause; and it describes this batch only. The variance of a product weight may have no finite expectation.
No interval is given: a nominal 95 % one held 30 to 65 % of the time in simulation. Why the product and not the
geometric mean: the product is the true weight of a sequence. ms-swift's is geometric, verl's is on clamped weights.
Source: Kish, "Survey Sampling" (1965).
"""

import numpy as np

from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.measurement.metric import ONE, Column, Level, Metric, ObjectiveSettings, effective_share
from rlaudit.tokens.pairs import LogprobPairs, importance_ratio


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per sequence: weight, squared weight, one."""
    weight_S = importance_ratio(pairs.sequence_log_ratio_S)
    return weight_S, np.square(weight_S), ONE


METRIC = Metric(
    name="ess_sequence",
    title="effective sample size, sequences",
    formula="(sum w)^2 / (S sum w^2), w = exp(sum d)",
    unit="share of sequences",
    reads="The share of sequences that an unbiased correction would really use.",
    columns=columns,
    combine=effective_share,
    level=Level.SEQUENCE,
    interval=IntervalMethod.NONE,
    exponentiates=True,
)
