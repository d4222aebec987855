"""Rollouts as small as a framework's test has them, drawn from known distributions; one dict of columns."""

from typing import Any

import numpy as np
from scipy.special import log_softmax

TEMPERATURE = 0.7
VOCABULARY = 256
# Of the trainer's logprob, times 1 - p: what another kernel makes of the same logits in float32 and more.
NOISE = 1e-3


def small_rollouts(
    seed: int, prompts: int, samples: int, length: int, *, raw: bool = False, entropies: bool = False
) -> dict[str, Any]:
    """One row per token, drawn at TEMPERATURE from logits that only the tokens so far decide.

    The trainer divides its logits by TEMPERATURE. raw: the engine reports logprobs that leave it out.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for prompt, sample in np.ndindex(prompts, samples):
        context: tuple[int, ...] = (seed, prompt)
        for position in range(length):
            world = np.random.default_rng(context)
            logits_V = world.exponential(1.0, VOCABULARY) * world.uniform(1, 6)
            logprobs_V = log_softmax(logits_V / TEMPERATURE)
            token = int(rng.choice(VOCABULARY, p=np.exp(logprobs_V)))
            noise = NOISE * -np.expm1(logprobs_V[token]) * rng.standard_normal()
            reported = log_softmax(logits_V)[token] if raw else logprobs_V[token]
            entropy = -(np.exp(logprobs_V) * logprobs_V).sum()
            rows.append((prompt, sample, position, token, reported, min(0.0, logprobs_V[token] + noise), entropy))
            context = (*context, token)
    names = ["prompt_id", "sample_id", "position", "token_id", "rollout_logprob", "trainer_logprob", "trainer_entropy"]
    return dict(zip(names if entropies else names[:-1], map(list, zip(*rows, strict=True)), strict=False))
