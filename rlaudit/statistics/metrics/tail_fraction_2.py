"""F(2): the share of tokens whose ratio leaves [1/2, 2].

Covered: sparse, violent faults, such as routing flips, shifted tokens and stale cache entries. Rounding hardly ever
gets here.
Not covered: their size, and where they sit, which the causes look for. Why not kurtosis: a count has an interval that
can be believed.
Source: the extreme-token fraction F(tau) of Rollout Routing Replay (arXiv 2510.11370). verl counts the two sides apart,
at its truncation threshold (2 by default) and 1/threshold. The sum of its two curves is this one.
"""

import math

from rlaudit.statistics.measurement.metric import SHARE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs

THRESHOLD = 2.0


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: beyond the threshold, one."""
    return counted(pairs.abs_log_ratio_T > math.log(THRESHOLD))


METRIC = Metric(
    name="tail_fraction_2",
    title="F(2)",
    formula="mean [max(exp(d), exp(-d)) > 2]",
    unit="share of tokens",
    reads="High while the median is as small as rounding: a few tokens are far off, which rounding does not do.",
    columns=columns,
    combine=mean,
    bounds=SHARE,
    is_share=True,
)
