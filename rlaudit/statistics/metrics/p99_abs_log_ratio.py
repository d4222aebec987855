"""The 99th percentile of the absolute log ratio: where the tail begins.

Covered: the tail at a level that does not move with the number of tokens. exp(p99) - 1 is the symmetric
token epsilon at which a clipping objective would clip one token in a hundred.
Not covered: faults rarer than 1 %; `tail_fraction_2` counts those. Resolution 0.75 % of the value.
Why not the maximum: it grows with the number of tokens. Fewer than about 2000 tokens hold fewer than 20
beyond p99.
Source: the definition; no framework logs it.
"""

from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.measurement.metric import Metric
from rlaudit.statistics.measurement.quantiles import Quantile, abs_log_ratio_bins

METRIC = Metric(
    name="p99_abs_log_ratio",
    title="p99 |log ratio|",
    formula="p99 |d|",
    unit="nats",
    reads="Divided by the median: 4 to 8 for rounding, far more for sparse faults.",
    columns=abs_log_ratio_bins,
    combine=Quantile(0.99),
    interval=IntervalMethod.BCA,
)
