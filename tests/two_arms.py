"""Two engines over the same prompts, one of them farther from its trainer by a known factor."""

from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.tokens.pairs import LogprobPairs


@dataclass(frozen=True)
class Tails:
    """Standard deviation of the log size of a difference, between prompts, completions and tokens."""

    prompts: float
    completions: float
    tokens: float


# The first holds k3 of 64 sequences to 14 %, as 64 sequences of a bfloat16 engine do (examples/vllm/v0-to-v1, block
# head); the second is simulated_pairs.honest_pairs, where a few sequences carry most of k3.
BFLOAT16_LIKE = Tails(0.15, 0.2, 0.55)
HEAVY = Tails(0.5, 0.7, 0.8)


def two_arms(
    seed: int, prompts: int, times: float, tails: Tails, *, completions: int = 2, k3: float = 1e-3, length: int = 64
) -> tuple[LogprobPairs, LogprobPairs]:
    """Candidate and reference: k3 of the reference is `k3` nats in expectation, of the candidate `times` that.

    Prompts are as hard for both; tokens are drawn by each engine for itself. d ~ N(-s²/2, s²), so that the mean ratio
    is 1 and E[k3] = E[s²]/2.
    """
    rng = np.random.default_rng(seed)
    log_size_P = tails.prompts * rng.standard_normal(prompts)
    spread = tails.prompts**2 + tails.completions**2 + tails.tokens**2
    size = np.sqrt(2 * k3 * np.exp(-2 * spread))
    return (
        _arm(rng, log_size_P, float(size * np.sqrt(times)), tails, completions, length),
        _arm(rng, log_size_P, float(size), tails, completions, length),
    )


def _arm(
    rng: np.random.Generator, log_size_P: Floats, size: float, tails: Tails, completions: int, length: int
) -> LogprobPairs:
    prompt_S = np.repeat(np.arange(len(log_size_P)), completions)
    lengths_S = rng.integers(length // 2, length * 3 // 2, len(prompt_S))
    sequence_T = np.repeat(np.arange(len(prompt_S)), lengths_S)
    log_size_S = log_size_P[prompt_S] + tails.completions * rng.standard_normal(len(prompt_S))
    size_T = size * np.exp(log_size_S[sequence_T] + tails.tokens * rng.standard_normal(sequence_T.size))
    log_ratio_T = -np.square(size_T) / 2 + size_T * rng.standard_normal(sequence_T.size)
    rollout_T: Floats = -np.abs(log_ratio_T) - rng.exponential(1.0, sequence_T.size)
    return LogprobPairs(rollout_T, rollout_T + log_ratio_T, sequence_T, prompt_S, prompts=len(log_size_P))
