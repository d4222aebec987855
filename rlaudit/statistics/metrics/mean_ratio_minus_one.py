"""Mean importance ratio minus one: it shows whether tokens were drawn with the reported rollout logprobs.

Covered: whether the rollout logprobs are those with which the tokens were drawn. If so, the mean of trainer/rollout is
exactly 1, however far apart both sides are. The exception: if the trainer gives probability to tokens that the
rollout's filters exclude, the mean is below 1. A mean other than 1 shows logprobs of another temperature, or of a cut
distribution. After top-p or top-k, the mean ratio is the probability that the filter keeps.
Not covered: how far apart engine and trainer are. A mean of 1 rules nothing out, as raw logprobs with a hidden top-p
give it as well. It says nothing about teacher-forced tokens or clipped ratios. The mean log ratio is no substitute: it
is 0 only for equal distributions. So it cannot separate two engines that differ from logprobs that are not the
sampler's.
Source: change of measure. Frameworks log the mean ratio itself, which is 1 higher. PipelineRL takes the mean of each
sequence, and then the mean of these; with policy_loss=reinforce it clamps each ratio first. TRL and verl log the mean
after truncation, which voids the test.
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
