"""The share of tokens a PPO objective would clip at the user's epsilons, from mismatch alone.

Covered: ratio outside [1 - low, 1 + high] before the first optimizer step. Not covered: whether the clip binds, which
depends on the sign of the advantage; staleness of the policy, if the trainer's weights are newer than the rollout's.
Why not judge engines by it: it is 0 up to a threshold and then jumps; it is for the objective layer only.
Source: Schulman et al., "Proximal Policy Optimization" (2017). PipelineRL averages the
means of sequences; its clip fraction is this one only under policy_loss ppo.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.statistics.measurement.metric import SHARE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def is_clipped(log_ratio: Floats, epsilon_low: float, epsilon_high: float) -> NDArray[np.bool_]:
    """Return whether clip(exp(log_ratio), 1 - epsilon_low, 1 + epsilon_high) changes it; decided in log space."""
    lowest = math.log1p(-epsilon_low) if epsilon_low < 1 else -math.inf
    return (log_ratio < lowest) | (log_ratio > math.log1p(epsilon_high))


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: clipped, one."""
    return counted(is_clipped(pairs.log_ratio_T, settings.ppo_epsilon_low, settings.ppo_epsilon_high))


METRIC = Metric(
    name="ppo_clip_fraction",
    title="PPO clip fraction",
    formula="mean [exp(d) < 1 - {ppo_epsilon_low:g} or exp(d) > 1 + {ppo_epsilon_high:g}]",
    unit="share of tokens",
    reads="What the objective would clip although nothing was learned yet.",
    columns=columns,
    combine=mean,
    bounds=SHARE,
    is_share=True,
    clipping="counts what clipping would change; the ratio itself is unclipped",
)
