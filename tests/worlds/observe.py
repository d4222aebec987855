"""What a user would have of a planted world: a token table, the trainer's scores, the requested settings. No label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.causes.history_rendered_anew import COLUMN
from rlaudit.meaning.candidates import Semantics, candidate_semantics
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.tokens.token_batch import TokenBatch
from worlds.generator import Logits
from worlds.ground import TRAINER_VERSION, Ground
from worlds.meaning_tables import logprobs_of
from worlds.plant import Plant, healthy

TOPS = 5
BF16_DROPPED_BITS = 16


@dataclass(frozen=True, eq=False)
class Observation:
    """Everything that may be judged."""

    batch: TokenBatch
    scored: ScoredTokens
    base_logprob_T: Floats
    prompt_tokens_T: Integers
    seen_T: NDArray[np.bool_]
    sampling: Semantics
    trainer: Semantics
    floor_k2: float


def observe(ground: Ground, plant: Plant, floor_k2: float, rng: np.random.Generator) -> Observation:
    """Roll out and score."""
    engine_TV = _engine_logits(ground, plant, rng)
    drawn_TV = logprobs_of(engine_TV, ground.seen_TV, plant.sampled)
    token_T = draw(drawn_TV, rng)
    reported_TV = drawn_TV
    if plant.reported is not None and plant.reported != plant.sampled:
        reported_TV = logprobs_of(engine_TV, ground.seen_TV, plant.reported)
    rows = np.arange(ground.tokens)
    requested = plant.requested or plant.sampled
    reported_T = reported_TV[rows, token_T].astype(np.float64)
    candidates = candidate_semantics(requested, plant.trainer.temperature, plant.trainer)
    scored = ground.meanings.scored(plant.trainer, token_T, reported_T, candidates, ground.sequence_T, ground.prompt_S)
    rollout_tops = _tops(reported_TV)
    trainer_tops = _tops(logprobs_of(ground.logits_TV, ground.seen_TV, plant.trainer))
    base_TV = logprobs_of(ground.base_TV, ground.seen_TV, plant.trainer)
    batch = TokenBatch(
        rollout_logprobs_T=scored.rollout_logprobs_T,
        trainer_logprobs_T=scored.trainer_logprobs_T,
        token_id_T=token_T,
        position_T=ground.position_T,
        sequence_T=ground.sequence_T,
        prompt_S=ground.prompt_S,
        prompt_names_S=ground.prompt_S,
        sample_names_S=np.arange(len(ground.prompt_S)) % ground.generator.samples,
        token_columns={
            "rollout_version": ground.version_T,
            "trainer_version": np.full(ground.tokens, TRAINER_VERSION),
            "trainer_entropy": scored.entropy_T,
        },
        sequence_columns={"cached_tokens": ground.cached_S, "batch_id": ground.batch_S, COLUMN: ground.changed_S},
        rollout_top_ids_TK=rollout_tops[0],
        rollout_top_logprobs_TK=rollout_tops[1],
        trainer_top_ids_TK=trainer_tops[0],
        trainer_top_logprobs_TK=trainer_tops[1],
    )
    for edit in plant.edits:
        batch = edit(batch, rng)
    return Observation(
        batch=batch,
        scored=scored,
        base_logprob_T=base_TV[rows, token_T].astype(np.float64),
        prompt_tokens_T=ground.prompt_tokens_S[ground.sequence_T],
        seen_T=ground.seen_TV[rows, token_T],
        sampling=requested,
        trainer=plant.trainer,
        floor_k2=floor_k2,
    )


def measured_floor(ground: Ground, rng: np.random.Generator) -> float:
    """k2 of a comparison with which nothing is wrong, from tokens of its own."""
    plant = healthy(ground)
    drawn_TV = logprobs_of(_engine_logits(ground, plant, rng), ground.seen_TV, plant.sampled)
    token_T = draw(drawn_TV, rng)
    apart_T = ground.meanings.logprobs(plant.trainer, token_T) - drawn_TV[np.arange(ground.tokens), token_T]
    return 0.5 * float(np.square(apart_T).mean())


def _engine_logits(ground: Ground, plant: Plant, rng: np.random.Generator) -> Logits:
    variance_T = np.full(ground.tokens, ground.generator.floor**2)
    for scale in plant.scales:
        variance_T = variance_T + np.square(scale(ground, rng))
    logits_TV = ground.logits_TV + ground.generator.noise(np.sqrt(variance_T), ground.sequence_T, rng)
    for drift in plant.drifts:
        logits_TV = logits_TV + drift(ground, rng)
    if plant.head_at is None:
        return logits_TV
    # Softmax does not mind a shift, rounding does: move the largest logit to where the model has it.
    target_T = plant.head_at * rng.uniform(0.75, 1.3, ground.tokens)
    shift_T = (target_T - ground.logits_TV.max(axis=1)).astype(np.float32)
    return _to_bfloat16(logits_TV + shift_T[:, None])


def _to_bfloat16(values: Logits) -> Logits:
    """Rounded to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> BF16_DROPPED_BITS) & np.uint32(1))
    kept: Logits = (rounded & np.uint32(0xFFFF0000)).view(np.float32)
    return kept


def draw(logprobs_TV: Logits, rng: np.random.Generator) -> Integers:
    """One token per row."""
    through_TV = np.cumsum(np.exp(logprobs_TV), axis=1, dtype=np.float64)
    at_T = rng.random(len(through_TV)) * through_TV[:, -1]
    token_T: Integers = (at_T[:, None] > through_TV).sum(axis=1).astype(np.int64)
    return token_T


def _tops(logprobs_TV: Logits) -> tuple[NDArray[np.int32], Logits]:
    best = np.argpartition(-logprobs_TV, TOPS, axis=1)[:, :TOPS]
    values = np.take_along_axis(logprobs_TV, best, axis=1)
    order = np.argsort(-values, axis=1)
    return np.take_along_axis(best, order, axis=1).astype(np.int32), np.take_along_axis(values, order, axis=1)
