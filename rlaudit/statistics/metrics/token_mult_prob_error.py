"""token_mult_prob_error: the mean of exp|log ratio|, as NeMo-RL logs and gates it.

Covered: comparison with NeMo-RL's thresholds (1.05 for bf16). Small differences give 1 + mean |log ratio|.
Not covered: a robust size. One token with |log ratio| = 10 contributes 22026. Read the mean |log ratio| instead.
Source: NeMo-RL, loss_functions.py and docs/guides/grpo.md.
"""

import math

from rlaudit.arrays import Floats
from rlaudit.statistics.measurement.metric import Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs, importance_ratio_minus_one


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: exp|log ratio| - 1, one; the 1 is added after the mean so that tiny differences survive."""
    return counted(importance_ratio_minus_one(pairs.abs_log_ratio_T))


def combine(sums: Floats) -> Floats:
    """(..., 2) -> 1 + mean."""
    return 1.0 + mean(sums)


METRIC = Metric(
    name="token_mult_prob_error",
    title="multiplicative probability error",
    formula="mean exp|d|",
    unit="ratio",
    reads="1 is a perfect match; NeMo-RL gates bf16 runs at 1.05.",
    columns=columns,
    combine=combine,
    bounds=(1.0, math.inf),
    exponentiates=True,
)
