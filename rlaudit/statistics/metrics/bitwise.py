"""Share of tokens whose logprobs differ in the bytes of a float32: 0 or not, without an estimator.

Covered: whether two computations of the same tokens are the same to the last bit, as batch invariance promises; between
two equal runs, or an engine and a trainer that share its kernels.
Not covered: how far apart they are, as 1e-7 and 1 nat count alike. A log that rounds its logprobs differs from one that
does not. Under lag it is not comparable: other weights give other bytes, whether or not an engine is at fault.
Source: `mismatch/bitwise_frac` of molt-rl 0.2.1; vllm#56370 counts differing logprobs of two equal runs.
"""

import numpy as np

from rlaudit.statistics.measurement.metric import SHARE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: whether the bytes differ, one."""
    rollout_T, trainer_T = (
        values_T.astype(np.float32).view(np.uint32) for values_T in (pairs.rollout_logprobs_T, pairs.trainer_logprobs_T)
    )
    return counted(rollout_T != trainer_T)


def unavailable(pairs: LogprobPairs) -> str | None:
    """Return why the bytes say nothing."""
    return "not comparable: tokens were sampled with other weights than the trainer's" if pairs.lagged else None


METRIC = Metric(
    name="bitwise",
    title="bytes differ",
    formula="mean [float32(trainer) and float32(rollout) differ in a bit]",
    unit="share of tokens",
    reads="0 only if both sides compute the same to the last bit; between two engines it is usually close to 1.",
    columns=columns,
    combine=mean,
    bounds=SHARE,
    is_share=True,
    unavailable=unavailable,
    clipping="no ratio in it",
)
