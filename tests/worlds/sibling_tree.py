"""Samples of prompts from known distributions, as a token table: while samples of a prompt agree they draw from one.

Each context has logits of its own, so there is no language in it; that is what the statistics of agreement need and all
they need. What can be wrong with groups is planted while they are drawn: copies, other prompts, other weights.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.token_batch import TokenBatch

Transform = Callable[[Floats], Floats]
# Of the vocabulary, from id 0: what every prompt holds, and a penalty falls on.
SEEN = 0.15


def at(
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
) -> Transform:
    """(N, V) logits to probabilities, as a sampler with these parameters makes them."""

    def probabilities(logits_NV: Floats) -> Floats:
        seen_V = np.arange(logits_NV.shape[1]) < SEEN * logits_NV.shape[1]
        factor_NV = np.where(logits_NV > 0, 1.0 / repetition_penalty, repetition_penalty)
        scaled_NV = np.where(seen_V, logits_NV * factor_NV, logits_NV) / temperature
        p_NV: Floats = np.exp(scaled_NV - scaled_NV.max(axis=1, keepdims=True))
        p_NV /= p_NV.sum(axis=1, keepdims=True)
        if top_p == 1.0 and not top_k and not min_p:
            return p_NV
        order_NV = np.argsort(-p_NV, axis=1)
        sorted_NV = np.take_along_axis(p_NV, order_NV, axis=1)
        kept_NV = np.cumsum(sorted_NV, axis=1) - sorted_NV < top_p
        kept_NV &= np.arange(p_NV.shape[1]) < (top_k or p_NV.shape[1])
        kept_NV &= sorted_NV >= min_p * sorted_NV[:, :1]
        filtered_NV = np.zeros_like(p_NV)
        np.put_along_axis(filtered_NV, order_NV, np.where(kept_NV, sorted_NV, 0.0), axis=1)
        sampled_NV: Floats = filtered_NV / filtered_NV.sum(axis=1, keepdims=True)
        return sampled_NV

    return probabilities


def tree(
    rng: np.random.Generator,
    prompts: int,
    samples: int,
    length: int = 24,
    *,
    sampler: Transform,
    report: Transform,
    trainer: Transform | None = None,
    vocabulary: int = 256,
    sharpness: tuple[float, float] = (1.0, 6.0),
    noise: float = 0.0,
    ragged: bool = False,
    copied: float = 0.0,
    strangers: float = 0.0,
    drift: float = 0.0,
) -> TokenBatch:
    """The samples' tokens, to the context in which each parts from all others of its prompt: the rest says nothing.

    sharpness: the range of the scale of exponential logits, which differs from context to context. noise: standard
    deviation of a logit, so that a report is off by noise times 1 - p. copied: share of prompts whose samples share one
    seed. strangers: share of prompts of which every second sample answers another prompt. drift: standard deviation of
    what an update changed in a logit; every second sample is drawn and reported after it, and scored before.
    """
    sequences = prompts * samples
    prompt_S = np.repeat(np.arange(prompts), samples)
    second_S = np.arange(sequences) % 2
    ends_S = rng.integers(1, length + 1, sequences) if ragged else np.full(sequences, length)
    tokens: list[list[tuple[int, float, float]]] = [[] for _ in range(sequences)]

    def drawn(alive_S: Integers, context_S: Integers) -> Integers:
        contexts = int(context_S.max()) + 1
        logits_NV = rng.exponential(1.0, (contexts, vocabulary)) * rng.uniform(*sharpness, (contexts, 1))
        row_S = context_S
        scored_NV = logits_NV
        if drift:
            updated_NV = logits_NV + drift * rng.standard_normal(logits_NV.shape)
            row_S = context_S + contexts * second_S[alive_S]
            scored_NV = np.concatenate([logits_NV, logits_NV])
            logits_NV = np.concatenate([logits_NV, updated_NV])
        cumulated_NV = np.cumsum(sampler(logits_NV), axis=1)
        share_S = _shares(rng, context_S, prompt_S[alive_S] < copied * prompts)
        reached = share_S * cumulated_NV[row_S, -1]
        token_S: Integers = (cumulated_NV[row_S] < reached[:, None]).sum(axis=1)
        reported_S = report(logits_NV)[row_S, token_S]
        trained_S = (trainer or sampler)(scored_NV)[row_S, token_S]
        with np.errstate(divide="ignore"):
            off_S = noise * rng.standard_normal(len(alive_S)) * (1.0 - reported_S)
            said_S, judged_S = np.minimum(np.log(reported_S) + off_S, 0.0), np.log(trained_S)
        for sequence, token, said, judged in zip(alive_S, token_S, said_S, judged_S, strict=True):
            tokens[sequence].append((int(token), float(said), float(judged)))
        return token_S

    descend(drawn, prompt_S * 2 + second_S * (prompt_S < strangers * prompts), ends_S, vocabulary)
    lengths_S = np.array([len(one) for one in tokens])
    flat = np.array([token for one in tokens for token in one])
    names_S = np.tile(np.arange(samples), prompts)
    return TokenBatch(
        rollout_logprobs_T=flat[:, 1],
        trainer_logprobs_T=flat[:, 2],
        token_id_T=flat[:, 0].astype(np.int64),
        position_T=np.concatenate([np.arange(length) for length in lengths_S]),
        sequence_T=np.repeat(np.arange(sequences), lengths_S),
        prompt_S=prompt_S,
        prompt_names_S=prompt_S,
        sample_names_S=names_S,
    )


def descend(
    drawn: Callable[[Integers, Integers], Integers], context_S: Integers, ends_S: Integers, vocabulary: int
) -> None:
    """Draw token by token while samples share a context; every sample's first token, too.

    drawn: which samples go on, and the number of each one's context, from 0: the tokens that they draw. context_S: of
    each sample's first token. ends_S: how long each may become.
    """
    alive_S = np.arange(len(context_S))
    for depth in range(int(ends_S.max(initial=0))):
        going = ends_S[alive_S] > depth
        alive_S, context_S = alive_S[going], context_S[going]
        _, context_S, size = np.unique(context_S, return_inverse=True, return_counts=True)
        shared = (size[context_S] > 1) | (depth == 0)
        alive_S, context_S = alive_S[shared], context_S[shared]
        if not alive_S.size:
            break
        _, context_S = np.unique(context_S, return_inverse=True)
        context_S = context_S * vocabulary + drawn(alive_S, context_S)


def _shares(rng: np.random.Generator, context_S: Integers, copied_S: NDArray[np.bool_]) -> Floats:
    """(S,) where in the cumulated mass each draw falls; the same for all copies in one context."""
    share_S = rng.random(len(context_S))
    if copied_S.any():
        share_S = np.where(copied_S, rng.random(int(context_S.max()) + 1)[context_S], share_S)
    return share_S
