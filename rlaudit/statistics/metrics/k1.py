"""k1: the plain estimator of KL(rollout || trainer), unbiased and noisy.

Covered: logprobs that are those the tokens were sampled with. It is the negative mean log ratio, so its sign shows a
one-sided shift that squares hide.
Not covered: the size of the KL with few tokens. k1 may then be negative by chance, or because the tokens were sampled
with other logprobs. Why it is here beside k3: for close distributions k1 ≈ k2 ≈ k3. A k1 far from k2 is a bias, hence
semantic.
Source: Schulman, "Approximating KL Divergence" (2020). slime's mismatch_kl is this and prime-rl's mismatch_kl is k3.
"""

from rlaudit.arrays import Floats
from rlaudit.statistics.measurement.metric import FLOAT32_RESOLUTION, Column, Metric, ObjectiveSettings, counted, mean
from rlaudit.tokens.pairs import LogprobPairs


def k1(log_ratio_T: Floats) -> Floats:
    """Per-token k1 in nats, from log_ratio = trainer - rollout."""
    return -log_ratio_T


def columns(pairs: LogprobPairs, settings: ObjectiveSettings) -> tuple[Column, ...]:
    """Per token: k1, one."""
    return counted(k1(pairs.log_ratio_T))


METRIC = Metric(
    name="k1",
    title="KL(rollout || trainer), k1",
    formula="mean(-d)",
    unit="nats",
    reads="Far from k2, or negative beyond its interval: a bias, so the semantic layer.",
    columns=columns,
    combine=mean,
    resolution=FLOAT32_RESOLUTION,
)
