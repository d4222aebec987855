"""Effective sample size over tokens, as a share of them, on unclamped weights.

Covered: how uneven token weights are; close to 1 for anything that trains. Not covered: the weight of a sequence, the
product of its tokens' (`ess_sequence`); and a common factor, as weights that are all 0.9 give 1. No interval is given,
because the tokens that decide it are too rare: a nominal 95 % one held 62 to 84 % of the time in simulation. It
describes this batch. Why not on clamped weights, as verl does: the clamp hides exactly the tokens that matter.
Source: Kish, "Survey Sampling" (1965). PipelineRL's is post-clamp under reinforce and divided by tokens as
here.
"""

import numpy as np

from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.measurement.metric import ONE, Column, Metric, ObjectiveSettings, effective_share
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: weight, squared weight, one."""
    weight_T = 1.0 + pairs.ratio_minus_one_T
    return weight_T, np.square(weight_T), ONE


METRIC = Metric(
    name="ess_token",
    title="effective sample size, tokens",
    formula="(sum w)^2 / (N sum w^2), w = exp(d)",
    unit="share of tokens",
    reads="The share of tokens that an importance-weighted average really uses.",
    columns=columns,
    combine=effective_share,
    interval=IntervalMethod.NONE,
    exponentiates=True,
)
