"""Small token tables with a known difference between both sides."""

from dataclasses import replace

import numpy as np

from rlaudit.tokens.token_batch import TokenBatch


def table(seed=0, prompts=20, samples=2, length=40, noise=0.01, columns=None, peaked=0.5):
    """Honest noise on logprobs as peaked as a language model's."""
    rng = np.random.default_rng(seed)
    sequences = prompts * samples
    tokens = sequences * length
    rollout_T = -np.where(rng.random(tokens) < peaked, rng.exponential(0.02, tokens), rng.exponential(1.5, tokens))
    scale_T = noise * -np.expm1(rollout_T)
    return TokenBatch(
        rollout_logprobs_T=rollout_T,
        trainer_logprobs_T=np.minimum(rollout_T + scale_T * rng.standard_normal(tokens), 0.0),
        token_id_T=rng.integers(0, 500, tokens),
        position_T=np.tile(np.arange(length), sequences),
        sequence_T=np.repeat(np.arange(sequences), length),
        prompt_S=np.repeat(np.arange(prompts), samples),
        prompt_names_S=np.repeat(np.arange(prompts), samples),
        sample_names_S=np.tile(np.arange(samples), prompts),
        token_columns=columns or {},
    )


def with_trainer(batch, trainer_T):
    """The same table with other trainer logprobs."""
    return replace(batch, trainer_logprobs_T=trainer_T)


def with_columns(batch, **columns):
    """The same table with more columns per token."""
    return replace(batch, token_columns={**batch.token_columns, **columns})
