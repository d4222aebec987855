"""A rollout engine on the toy model: prefill, decode, sample, and report logprobs as vLLM's sampler does.

The order is that of vLLM's V1 sampler: raw logprobs are taken first; then penalties, temperature, min-p, top-k, top-p;
processed logprobs are taken last, from what the token is drawn from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from toy_model import Cache, Weights, bfloat16, exact, extend, log_softmax, logits_of

TOP = 3


@dataclass(frozen=True)
class Sampling:
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0


@dataclass(frozen=True)
class Engine:
    """mode: raw or processed logprobs. body, kept, head: rounding of the body, of its cache and of the logits."""

    sampling: Sampling = Sampling()
    mode: str = "processed"
    body: Callable = bfloat16
    kept: Callable | None = None
    head: Callable = exact


@dataclass
class Rollout:
    """(B, T) sampled tokens with their reported logprobs; (B, T, TOP) best tokens and theirs; (B, P) prompts.

    version_BT: number of the weights that computed the token. mask_BTV: the tokens that the filters kept.
    cached_B: prompt tokens whose keys were in the cache."""

    prompts_BP: np.ndarray
    tokens_BT: np.ndarray
    logprobs_BT: np.ndarray
    top_ids_BTK: np.ndarray
    top_logprobs_BTK: np.ndarray
    version_BT: np.ndarray
    mask_BTV: np.ndarray
    cached_B: np.ndarray


def processed(logits, seen_BV, sampling):
    """Log probabilities of what tokens are drawn from."""
    if sampling.repetition_penalty != 1.0:
        penalised = np.where(logits > 0, logits / sampling.repetition_penalty, logits * sampling.repetition_penalty)
        logits = np.where(seen_BV, penalised, logits)
    logprobs = log_softmax(logits / sampling.temperature)
    order = np.argsort(-logprobs, axis=-1, kind="stable")
    kept = np.ones_like(logprobs, dtype=bool)
    if sampling.top_k:
        np.put_along_axis(kept, order[..., sampling.top_k :], False, axis=-1)
    if sampling.top_p < 1.0:
        # Top-p counts what top-k left, and always keeps the token that crosses the threshold.
        left = np.where(kept, np.exp(logprobs), 0.0)
        left /= left.sum(axis=-1, keepdims=True)
        ranked = np.take_along_axis(left, order, axis=-1)
        above = np.cumsum(ranked, axis=-1) - ranked
        dropped = np.zeros_like(kept)
        np.put_along_axis(dropped, order, above >= sampling.top_p, axis=-1)
        kept &= ~dropped
    return log_softmax(np.where(kept, logprobs, -np.inf))


def generate(
    engine: Engine,
    weights: Sequence[Weights],
    prompts_BP: np.ndarray,
    tokens: int,
    generator: np.random.Generator,
    changes_B: Sequence[Sequence[int]] | None = None,
    cached: tuple[Weights, np.ndarray] | None = None,
) -> Rollout:
    """Sample `tokens` tokens for each prompt.

    weights: those the engine has in turn; sequence b goes to the next ones at the steps changes_B[b] and keeps its
    cache, as an update in flight does. cached: the weights that computed the keys and values of the first cached_B
    prompt tokens of each sequence, which are reused.
    """
    count = len(prompts_BP)
    cached_B = np.zeros(count, dtype=int) if cached is None else cached[1]
    features, cache = extend(weights[0], prompts_BP, None, engine.body, engine.kept)
    if cached is not None:
        features, cache = _prefill_on_old_keys(weights[0], prompts_BP, cached[0], cached_B, engine)
    seen_BV = np.zeros((count, len(weights[0].head_VD)), dtype=bool)
    np.put_along_axis(seen_BV, prompts_BP, True, axis=1)
    version_B = np.zeros(count, dtype=int)
    columns = []
    last = features[:, -1]
    for step in range(tokens):
        if changes_B is not None and step:
            version_B = np.array([sum(step >= change for change in changes) for changes in changes_B])
        logits = np.empty((count, len(weights[0].head_VD)), dtype=np.float32)
        for number in np.unique(version_B):
            own = version_B == number
            logits[own] = logits_of(weights[number], last[own], engine.head)
        drawn_from = processed(logits, seen_BV, engine.sampling)
        reported = log_softmax(logits) if engine.mode == "raw" else drawn_from
        token_B = _drawn(drawn_from, generator)
        best = np.argsort(-reported, axis=1, kind="stable")[:, :TOP]
        rows = np.arange(count)
        tops = np.take_along_axis(reported, best, axis=1)
        columns.append((token_B, reported[rows, token_B], best, tops, version_B, np.isfinite(drawn_from)))
        seen_BV[rows, token_B] = True
        last = _decode(weights, version_B, token_B, cache, engine)
    stacked = [np.stack(parts, axis=1) for parts in zip(*columns, strict=True)]
    return Rollout(prompts_BP, *stacked, cached_B)


def _drawn(logprobs_BV, generator):
    """One token each: where a uniform number falls among the cumulated probabilities."""
    cumulated = np.cumsum(np.exp(logprobs_BV), axis=1)
    return np.argmax(cumulated > generator.uniform(size=(len(cumulated), 1)) * cumulated[:, -1:], axis=1)


def _decode(weights, version_B, token_B, cache, engine):
    """Features of one more token each, under the weights that its sequence has now."""
    parts = {}
    for number in np.unique(version_B):
        parts[number] = extend(
            weights[number], token_B[:, None], Cache(cache.keys, cache.values), engine.body, engine.kept
        )
    keys = np.stack([parts[number][1].keys[row, -1] for row, number in enumerate(version_B)])
    values = np.stack([parts[number][1].values[row, -1] for row, number in enumerate(version_B)])
    cache.append(keys[:, None], values[:, None])
    return np.stack([parts[number][0][row, -1] for row, number in enumerate(version_B)])


def _prefill_on_old_keys(weights, prompts_BP, old, cached_B, engine):
    """The cached part of a prompt is not computed again: its keys and values are those of the old weights."""
    _, stale = extend(old, prompts_BP, None, engine.body, engine.kept)
    features, fresh = [], []
    for row, cached in enumerate(cached_B):
        held = Cache(stale.keys[[row], :cached], stale.values[[row], :cached]) if cached else None
        own, cache = extend(weights, prompts_BP[[row], cached:], held, engine.body, engine.kept)
        features.append(own[0, -1:])
        fresh.append(cache)
    cache = Cache(np.concatenate([one.keys for one in fresh]), np.concatenate([one.values for one in fresh]))
    return np.stack(features), cache
