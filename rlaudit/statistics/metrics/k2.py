"""k2: half the mean squared log ratio, the figure in which independent causes add up.

Covered: attribution. The squares of independent disturbances add, so the share of k2 that an ablation
removes is the share it caused. Never negative.
Not covered: an unbiased KL; it is one only for small differences of logprobs that are the sampler's.
Why not k3 for shares: k3 grows with exp(d), so a single token of large positive d can decide it.
Source: Schulman, "Approximating KL Divergence" (2020).
"""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.statistics.measurement.metric import NON_NEGATIVE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def k2(log_ratio_T: Floats) -> Floats:
    """Per-token k2 in nats, from log_ratio = trainer - rollout."""
    return 0.5 * np.square(log_ratio_T)


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: k2, one."""
    return counted(k2(pairs.log_ratio_T))


METRIC = Metric(
    name="k2",
    title="half mean squared log ratio, k2",
    formula="mean(d^2) / 2",
    unit="nats",
    reads="Additive over independent causes: effects of factors are shares of it.",
    columns=columns,
    combine=mean,
    bounds=NON_NEGATIVE,
)
