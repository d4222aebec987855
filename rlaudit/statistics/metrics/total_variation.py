"""Total variation between rollout and trainer, estimated on the sampled tokens.

Covered: the distance that bounds how much a surrogate objective can be off. Bounded by 1 in expectation,
and symmetric.
Not covered: mass of the trainer on tokens the rollout cannot sample (top-p, top-k): that half is invisible
here.
Why not the mean |difference of probabilities| of sampled tokens: that weighs a token by its probability
twice.
Source: TV = E over the rollout of |trainer/rollout - 1| / 2, exact where the supports match; the bound is
that of Schulman et al., "Trust Region Policy Optimization" (2015).
"""

import numpy as np

from rlaudit.statistics.measurement.metric import NON_NEGATIVE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: |ratio - 1| / 2, one."""
    return counted(0.5 * np.abs(pairs.ratio_minus_one_T))


METRIC = Metric(
    name="total_variation",
    title="total variation",
    formula="mean |exp(d) - 1| / 2",
    unit="probability",
    reads="The share of probability that sits on other tokens.",
    columns=columns,
    combine=mean,
    bounds=NON_NEGATIVE,
    exponentiates=True,
)
