"""Mean absolute difference of the sampled tokens' probabilities, as verl logs it.

Covered: comparison with verl's curve (normal below 0.005, precision trouble above 0.01 by its FAQ).
Not covered: unlikely tokens, whose probabilities differ little however wrong they are. It is not a total
variation.
Source: verl/utils/debug/metrics.py; its docstring says logprobs, its code takes probabilities.
"""

import numpy as np

from rlaudit.statistics.measurement.metric import NON_NEGATIVE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: |trainer probability - rollout probability|, one."""
    return counted(np.exp(pairs.rollout_logprobs_T) * np.abs(pairs.ratio_minus_one_T))


METRIC = Metric(
    name="probs_diff_mean",
    title="mean |probability difference|",
    formula="mean |exp(trainer) - exp(rollout)|",
    unit="probability",
    reads="verl's curve; blind to unlikely tokens.",
    columns=columns,
    combine=mean,
    bounds=NON_NEGATIVE,
)
