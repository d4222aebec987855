"""F(1.1): the share of tokens whose ratio leaves [1/1.1, 1.1].

Covered: how common clearly visible differences are. Symmetric, so an engine that is too sure counts like
one that is not.
Not covered: their size. Why not a one-sided count: the sign of a fault depends on which side is wrong.
Source: the extreme-token fraction F(tau) of Rollout Routing Replay (arXiv 2510.11370), there at larger tau.
"""

import math

from rlaudit.statistics.measurement.metric import SHARE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs

THRESHOLD = 1.1


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: beyond the threshold, one."""
    return counted(pairs.abs_log_ratio_T > math.log(THRESHOLD))


METRIC = Metric(
    name="tail_fraction_1_1",
    title="F(1.1)",
    formula="mean [max(exp(d), exp(-d)) > 1.1]",
    unit="share of tokens",
    reads="How many tokens differ by more than a tenth.",
    columns=columns,
    combine=mean,
    bounds=SHARE,
    is_share=True,
)
