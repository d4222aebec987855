"""k3: the low-variance, non-negative estimator of KL(rollout || trainer).

Covered: rollouts that were sampled from the whole vocabulary (no top-p, top-k or min-p).
Not covered: truncated rollouts (top-p, top-k), where the estimate is too low or too high; `rlaudit compare` says so.
A few large positive log ratios can decide the mean. Reports lead with k3, since it varies less from token to token than
k1: if differences are small, k3 varies by about KL and k1 by about √(2 KL).
Source: Schulman, "Approximating KL Divergence" (2020). PipelineRL's k3 averages the means of
sequences and takes the trainer's logprobs from the current policy, so it includes staleness. ms-swift clamps k3 at 10.
slime calls k3 mismatch_k3_kl; slime's mismatch_kl is k1. NeMo-RL's gen_kl_error is the estimator that
reference_policy_kl_type names, which may be another one.
"""

from rlaudit.arrays import Floats
from rlaudit.statistics.measurement.metric import NON_NEGATIVE, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs, importance_ratio_minus_one


def k3(log_ratio_T: Floats, ratio_minus_one_T: Floats | None = None) -> Floats:
    """Return per-token k3 in nats, from log_ratio = trainer - rollout. ratio_minus_one_T: if known already."""
    if ratio_minus_one_T is None:
        ratio_minus_one_T = importance_ratio_minus_one(log_ratio_T)
    return ratio_minus_one_T - log_ratio_T


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: k3, one."""
    return counted(k3(pairs.log_ratio_T, pairs.ratio_minus_one_T))


METRIC = Metric(
    name="k3",
    title="KL(rollout || trainer), k3",
    formula="mean(exp(d) - 1 - d)",
    unit="nats",
    reads="How far apart the two distributions are, if the reported logprobs are the sampler's.",
    columns=columns,
    combine=mean,
    bounds=NON_NEGATIVE,
    exponentiates=True,
)
