"""Mean importance ratio minus one: whether the rollout logprobs are the sampler's, not how close the two sides are.

Covered: whether the rollout logprobs are those the tokens were drawn with. Then the mean of trainer/rollout is exactly
1, however far apart the two are, unless the trainer gives mass to what they exclude. Another mean shows logprobs of
another temperature, or of a cut distribution. After top-p or top-k it is the probability that the filter keeps.
Not covered: how large a mismatch is. A mean of 1 rules nothing out, as raw logprobs with a hidden top-p give it as
well. It says nothing about teacher-forced tokens or clipped ratios. The mean log ratio is no substitute:
it is 0 only for equal distributions, so it mixes the distance of two engines with logprobs that are not the sampler's.
Source: change of measure. Theirs are the mean itself, 1 higher. PipelineRL averages sequence means, and clamps first if
policy_loss is reinforce. TRL and verl log it after truncation, which voids the test.
"""

from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.measurement.metric import FLOAT32_RESOLUTION, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: ratio - 1, one."""
    return counted(pairs.ratio_minus_one_T)


METRIC = Metric(
    name="mean_ratio_minus_one",
    title="importance ratio mean - 1",
    formula="mean exp(d) - 1",
    unit="ratio",
    reads="Not 0: the rollout logprobs are not those of the sampler. 0: that alone rules nothing out.",
    columns=columns,
    combine=mean,
    resolution=FLOAT32_RESOLUTION,
    # A sum of martingale differences if the logprobs are the sampler's: symmetric enough that skewness corrections only
    # add noise.
    interval=IntervalMethod.PERCENTILE,
    exponentiates=True,
)
