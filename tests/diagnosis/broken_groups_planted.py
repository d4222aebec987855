"""What makes samples of one prompt no siblings, planted in honest tables.

Both sides report what tokens were drawn from, whatever is planted: no cause may be named.
"""

from dataclasses import replace

import numpy as np
from known_contexts import Contexts, contexts_of, grow, logits_of
from worlds.sibling_tree import at

from rlaudit.arrays import Integers
from rlaudit.tokens.token_batch import TokenBatch

PROMPTS, SAMPLES, LENGTH = 192, 16, 24
TOOL_TOKENS = 4


def honest(seed: int = 1, length: int = LENGTH, sharpness: tuple[float, float] = (1.0, 9.0)) -> TokenBatch:
    """Nothing is planted."""
    return grow(np.random.default_rng(seed), _known(seed, sharpness=sharpness), PROMPTS, SAMPLES, length, noise=1e-3)[0]


def copied(share: float, together: int, length: int = 64, sharpness: tuple[float, float] = (1.0, 3.0)) -> TokenBatch:
    """In a share of the prompts, every `together` samples are one: a seed for them all, or logged again."""
    rng = np.random.default_rng(2)
    alone = _whole(rng, _known(2, sharpness=sharpness), length)
    source_S = np.arange(alone.sequences)
    chosen_S = np.repeat(rng.random(PROMPTS) < share, SAMPLES)
    copies = alone.take(np.where(chosen_S, source_S - source_S % together, source_S))
    return replace(copies, sample_names_S=alone.sample_names_S)


def kept_by_outcome(logged: bool) -> TokenBatch:
    """Dynamic sampling: groups whose samples are all right or all wrong are drawn again, by another prompt."""
    batch, right_S = _judged()
    share_P = np.bincount(batch.prompt_S, right_S) / SAMPLES
    kept = np.flatnonzero(((share_P > 0) & (share_P < 1))[batch.prompt_S])
    rewarded = replace(batch, sequence_columns={"reward": right_S.astype(float)} if logged else {})
    return rewarded.take(kept)


def best_of_each(logged: bool) -> TokenBatch:
    """Best of n: of every group those that are right."""
    batch, right_S = _judged()
    kept = np.flatnonzero(right_S)
    rewarded = replace(batch, sequence_columns={"reward": right_S.astype(float)} if logged else {})
    return rewarded.take(kept)


def other_weights(size: float, logged: bool) -> TokenBatch:
    """Every other sample was drawn after an update in flight, which moved logits by `size`; each reports its own."""
    return _two(size, "rollout_version" if logged else None)


def other_prompts(size: float) -> TokenBatch:
    """Every other sample answers another chat template: all logits are others, by `size`."""
    return _two(size, None)


def with_tools(masked: bool, reported: float) -> TokenBatch:
    """After its third token each sample is given the same tokens of a tool, with some logprob or none (NaN)."""
    batch = honest()
    long_S = batch.lengths_S >= 3
    after_S = batch.offsets[:-1][long_S] + 3
    places = np.repeat(after_S, TOOL_TOKENS)
    given = np.tile(np.arange(TOOL_TOKENS) + 7, len(after_S))
    mask_T = np.insert(np.ones(batch.tokens), places, 0.0)
    sequence_T = np.insert(batch.sequence_T, places, np.repeat(np.flatnonzero(long_S), TOOL_TOKENS))
    firsts = np.searchsorted(sequence_T, np.arange(batch.sequences))
    return replace(
        batch,
        rollout_logprobs_T=np.insert(batch.rollout_logprobs_T, places, reported),
        trainer_logprobs_T=np.insert(batch.trainer_logprobs_T, places, reported),
        token_id_T=np.insert(batch.token_id_T, places, given),
        sequence_T=sequence_T,
        position_T=np.arange(len(sequence_T)) - firsts[sequence_T],
        token_columns={"loss_mask": mask_T} if masked else {},
    )


def _known(seed: int, sharpness: tuple[float, float] = (1.0, 9.0)) -> Contexts:
    return contexts_of(logits_of(np.random.default_rng(seed), 2048, sharpness=sharpness), at(), at())


def _whole(rng: np.random.Generator, known: Contexts, length: int) -> TokenBatch:
    """Samples to their very end: after a sample has parted from all others, its contexts are its own."""
    shared, _ = grow(rng, known, PROMPTS, SAMPLES, length, noise=1e-3)
    rest_S = length - shared.lengths_S
    context_T = rng.integers(0, len(known.p_DV), rest_S.sum())
    token_T = known.draw(rng, context_T)
    places = np.repeat(shared.offsets[1:], rest_S)
    sequence_T = np.repeat(np.arange(shared.sequences), length)
    return replace(
        shared,
        rollout_logprobs_T=np.insert(shared.rollout_logprobs_T, places, known.reported_DV[context_T, token_T]),
        trainer_logprobs_T=np.insert(shared.trainer_logprobs_T, places, known.reported_DV[context_T, token_T]),
        token_id_T=np.insert(shared.token_id_T, places, token_T),
        sequence_T=sequence_T,
        position_T=np.tile(np.arange(length), shared.sequences),
    )


def _judged() -> tuple[TokenBatch, Integers]:
    """Samples, and which are right. As bad as it gets: their first token alone decides."""
    batch = honest(3)
    first_S = batch.token_id_T[batch.offsets[:-1]]
    likeliest_P = np.array([np.bincount(first_S[batch.prompt_S == prompt]).argmax() for prompt in range(PROMPTS)])
    return batch, first_S == likeliest_P[batch.prompt_S]


def _two(size: float, column: str | None) -> TokenBatch:
    """Samples of two models in turn, whose logits differ by `size`, under one name for each prompt."""
    rng = np.random.default_rng(4)
    logits_DV = logits_of(rng, 1024, sharpness=(1.0, 9.0))
    both_DV = np.concatenate([logits_DV, logits_DV + size * rng.standard_normal(logits_DV.shape)])
    known = contexts_of(both_DV, at(), at())
    batch, _ = grow(rng, known, PROMPTS, SAMPLES, LENGTH, noise=1e-3, weights=2)
    return replace(batch, token_columns={column: (batch.sequence_T % 2).astype(float)} if column else {})
