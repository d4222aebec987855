"""Samples of prompts that draw their contexts from a few hundred known ones: large tables, fast.

Of each context both full distributions are known, so that what was said can be held against what is the case.
"""

from dataclasses import dataclass, replace

import numpy as np
from worlds.sibling_tree import Transform, at, descend

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.token_batch import TokenBatch

# Of the tokens of a context, those that its sequence holds already: what a penalty moves.
SEEN = 1 / 3


def penalised(repetition: float = 1.0, presence: float = 0.0) -> Transform:
    """(N, V) logits to probabilities under penalties alone.

    Which tokens were seen is drawn once for a shape: whoever penalises the same contexts, penalises the same.
    """

    def probabilities(logits_NV: Floats) -> Floats:
        seen_NV = np.random.default_rng(0).random(logits_NV.shape) < SEEN
        repeated_NV = np.where(logits_NV > 0, logits_NV / repetition, logits_NV * repetition)
        return at()(np.where(seen_NV, repeated_NV - presence, logits_NV))

    return probabilities


@dataclass(frozen=True, eq=False)
class Contexts:
    """D contexts of V tokens, of which those of a tree are drawn.

    p_DV: what tokens are drawn from. reported_DV, trained_DV: logprobs of both sides; -inf where a side has cut.
    """

    p_DV: Floats
    reported_DV: Floats
    trained_DV: Floats

    def __post_init__(self) -> None:
        cumulated_DV = np.cumsum(self.p_DV, axis=1)
        cumulated_DV /= cumulated_DV[:, -1:]
        object.__setattr__(self, "_cumulated", (cumulated_DV + np.arange(len(self.p_DV))[:, None]).ravel())

    def draw(self, rng: np.random.Generator, context_N: Integers) -> Integers:
        """(N,) a token of each context."""
        vocabulary = self.p_DV.shape[1]
        place_N = np.searchsorted(self._cumulated, context_N + rng.random(len(context_N)), side="right")  # type: ignore[attr-defined]
        return np.minimum(place_N - context_N * vocabulary, vocabulary - 1)


def contexts_of(logits_DV: Floats, sampler: Transform, report: Transform, trainer: Transform | None = None) -> Contexts:
    """The trainer is the sampler's where none is given."""
    sampled_DV, reported_DV = sampler(logits_DV), report(logits_DV)
    with np.errstate(divide="ignore"):
        return Contexts(sampled_DV, np.log(reported_DV), np.log(trainer(logits_DV) if trainer else sampled_DV))


def logits_of(
    rng: np.random.Generator, contexts: int, vocabulary: int = 256, sharpness: tuple[float, float] = (1.0, 6.0)
) -> Floats:
    """(D, V) exponential logits; sharpness: the range of their scale, which differs from context to context."""
    return rng.exponential(1.0, (contexts, vocabulary)) * rng.uniform(*sharpness, (contexts, 1))


def grow(
    rng: np.random.Generator,
    contexts: Contexts,
    prompts: int,
    samples: int,
    length: int = 24,
    *,
    noise: float = 0.0,
    ragged: bool = False,
    weights: int = 1,
) -> tuple[TokenBatch, Integers]:
    """The samples' tokens, to the context in which each parts from all others of its prompt: the rest says nothing.

    noise: standard deviation of a logit, so that a report is off by noise times 1 - p. weights: samples are of so many
    in turn, and `contexts` lists what each makes of the same contexts, one after the other. Also (T,) which of the
    contexts each token was drawn in.
    """
    sequences, vocabulary = prompts * samples, contexts.p_DV.shape[1]
    prompt_S = np.repeat(np.arange(prompts), samples)
    ends_S = rng.integers(1, length + 1, sequences) if ragged else np.full(sequences, length)
    each = len(contexts.p_DV) // weights
    depth_S = np.zeros(sequences, dtype=np.int64)
    drawn: list[tuple[Integers, ...]] = []

    def draw(alive_S: Integers, node_S: Integers) -> Integers:
        context_S = rng.integers(0, each, int(node_S.max()) + 1)[node_S] + alive_S % weights * each
        token_S = contexts.draw(rng, context_S)
        drawn.append((alive_S, depth_S[alive_S], token_S, context_S))
        depth_S[alive_S] += 1
        return token_S

    descend(draw, prompt_S, ends_S, vocabulary)
    sequence_T, position_T, token_T, context_T = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    order = np.lexsort((position_T, sequence_T))
    sequence_T, position_T, token_T, context_T = (
        column[order] for column in (sequence_T, position_T, token_T, context_T)
    )
    reported_T = contexts.reported_DV[context_T, token_T]
    off_T = noise * rng.standard_normal(len(order)) * -np.expm1(reported_T)
    batch = TokenBatch(
        rollout_logprobs_T=np.minimum(reported_T + off_T, 0.0),
        trainer_logprobs_T=contexts.trained_DV[context_T, token_T],
        token_id_T=token_T,
        position_T=position_T,
        sequence_T=sequence_T,
        prompt_S=prompt_S,
        prompt_names_S=prompt_S,
        sample_names_S=np.tile(np.arange(samples), prompts),
    )
    return batch, context_T


def without_trainer(batch: TokenBatch) -> TokenBatch:
    """The same table, of which no trainer said anything."""
    return replace(batch, trainer_logprobs_T=np.full(batch.tokens, np.nan))
