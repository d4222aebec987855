"""Median absolute log ratio: the bulk, untouched by a few broken tokens.

Covered: whether the typical token differs by rounding alone. With p99 it separates precision (p99/median of 4 to 8)
from sparse faults, such as routing flips of a mixture of experts or a broken sequence. These leave the median as it
was.
Not covered: the tail, and a bias of either sign. Its resolution is 0.75 % of the value. Exact zeros are kept apart, so
a median of 0 means that more than half of the tokens match bitwise. Why a histogram and not a sort: counts add up over
chunks and prompts, order statistics do not.
Source: the definition; no framework logs it.
"""

from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.measurement.metric import Metric
from rlaudit.statistics.measurement.quantiles import Quantile, abs_log_ratio_bins

METRIC = Metric(
    name="median_abs_log_ratio",
    title="median |log ratio|",
    formula="median |d|",
    unit="nats",
    reads="As small as rounding while the mean is not: a few tokens are far off.",
    columns=abs_log_ratio_bins,
    combine=Quantile(0.5),
    interval=IntervalMethod.PERCENTILE,
)
