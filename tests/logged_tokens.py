"""Logged tokens of an engine and a trainer that sample and score as they say, or not."""

import numpy as np

from rlaudit.tokens.token_batch import TokenBatch

VOCABULARY = 60


def softmax(logits):
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def logged(
    seed=0,
    prompts=40,
    samples=2,
    length=40,
    noise=0.0,
    temperature=1.0,
    reported_at=None,
    trainer_at=None,
    top_p=1.0,
    entropy=True,
    tops=False,
    trainer_tops=False,
    sampler_at=None,
):
    """Tokens sampled at `temperature` through `top_p`; reported at another temperature, or scored at another one.

    sampler_at: a temperature that neither side knows.
    """
    rng = np.random.default_rng(seed)
    sequences = prompts * samples
    tokens = sequences * length
    logits = rng.normal(0, 2.5, (tokens, VOCABULARY))
    engine = softmax((logits + noise * rng.normal(size=logits.shape)) / temperature)
    sampled_from = engine if sampler_at is None else softmax(np.log(engine) / sampler_at)
    if top_p < 1:
        order = np.argsort(-engine, axis=1)
        ranked = np.take_along_axis(engine, order, axis=1)
        kept = np.cumsum(ranked, axis=1) - ranked < top_p
        sampled_from = np.zeros_like(engine)
        np.put_along_axis(sampled_from, order, ranked * kept, axis=1)
        sampled_from /= sampled_from.sum(axis=1, keepdims=True)
    ids = (sampled_from.cumsum(axis=1) > rng.random((tokens, 1))).argmax(axis=1)
    rows = np.arange(tokens)
    reported = engine if reported_at is None else softmax(logits / reported_at)
    trainer = softmax(logits / (trainer_at or temperature))
    columns = {"trainer_entropy": -(trainer * np.log(np.maximum(trainer, 1e-300))).sum(axis=1)} if entropy else {}
    best = np.argsort(-reported, axis=1)[:, :3]
    return TokenBatch(
        rollout_logprobs_T=np.log(reported[rows, ids]),
        trainer_logprobs_T=np.log(trainer[rows, ids]),
        token_id_T=ids,
        position_T=np.tile(np.arange(length), sequences),
        sequence_T=np.repeat(np.arange(sequences), length),
        prompt_S=np.repeat(np.arange(prompts), samples),
        prompt_names_S=np.repeat(np.arange(prompts), samples),
        sample_names_S=np.tile(np.arange(samples), prompts),
        token_columns=columns,
        rollout_top_ids_TK=best if tops else None,
        rollout_top_logprobs_TK=np.log(np.take_along_axis(reported, best, axis=1)) if tops else None,
        trainer_top_ids_TK=best if trainer_tops else None,
        trainer_top_logprobs_TK=np.log(np.take_along_axis(trainer, best, axis=1)) if trainer_tops else None,
    )
