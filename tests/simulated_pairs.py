"""Honest rollouts with a known mismatch: whatever its size, the ratio has mean 1 under the rollout."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.tokens.pairs import LogprobPairs


def honest_pairs(
    seed: int, prompts: int, *, completions: int = 4, length: int = 64, size: float = 0.02
) -> LogprobPairs:
    """d ~ N(-s²/2, s²) with s lognormal between prompts, completions and tokens.

    Hence heavy tails, and tokens that are not independent of each other.
    """
    rng = np.random.default_rng(seed)
    sequences = prompts * completions
    lengths_S = rng.integers(length // 2, length * 3 // 2, sequences)
    sequence_T = np.repeat(np.arange(sequences), lengths_S)
    prompt_S = np.repeat(np.arange(prompts), completions)
    log_scale_S = 0.5 * rng.standard_normal(prompts)[prompt_S] + 0.7 * rng.standard_normal(sequences)
    log_scale_T = log_scale_S[sequence_T] + 0.8 * rng.standard_normal(sequence_T.size)
    scale_T = np.minimum(size * np.exp(log_scale_T), 1.5)
    log_ratio_T = -np.square(scale_T) / 2 + scale_T * rng.standard_normal(sequence_T.size)
    rollout_T: Floats = -np.abs(log_ratio_T) - rng.exponential(1.0, sequence_T.size)
    return LogprobPairs(rollout_T, rollout_T + log_ratio_T, sequence_T, prompt_S)


def five_tokens() -> LogprobPairs:
    """Two sequences of 3 and 2 tokens with log ratios 0.1, -0.2, 0, 0.7, -0.05."""
    rollout_T = np.array([-1.0, -2.0, -0.5, -3.0, -0.1])
    return LogprobPairs(
        rollout_logprobs_T=rollout_T,
        trainer_logprobs_T=np.array([-0.9, -2.2, -0.5, -2.3, -0.15]),
        sequence_T=np.array([0, 0, 0, 1, 1]),
        prompt_S=np.array([0, 1]),
        entropy_T=np.array([1.0, 2.0, 0.5, 3.0, 0.1]),
    )
