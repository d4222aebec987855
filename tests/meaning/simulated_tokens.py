"""Tokens whose sampler, report and trainer are known: the ground truth of the semantic tests.

Logits are peaked as a language model's are: at a share of the positions one token holds nearly all the mass. The
engine's logits are the trainer's plus independent noise, so k3 between the two is about half its variance.
"""

from dataclasses import dataclass, replace

import numpy as np
from worlds.meaning_tables import MeaningTables, logprobs_of
from worlds.observe import draw

from rlaudit.meaning.candidates import Semantics, candidate_semantics
from rlaudit.meaning.scored_tokens import ScoredTokens
from rlaudit.tokens.token_batch import TokenBatch

RAW = Semantics()


@dataclass(frozen=True)
class World:
    """What is true. near_deterministic: share of positions with a dominant token; noise: sd of the engine's logits."""

    sampled: Semantics = RAW
    reported: Semantics | None = None  # None: honest
    trainer: Semantics = RAW
    requested: Semantics | None = None  # None: as sampled
    noise: float = 0.0
    near_deterministic: float = 0.6
    sequences: int = 40
    length: int = 64
    samples: int = 2
    vocabulary: int = 400
    seed: int = 0


def logits_of(world, generator):
    """(T, V) logits of a peaked model."""
    tokens = world.sequences * world.length
    spread = generator.uniform(1.5, 3.5, size=(tokens, 1))
    logits = spread * generator.standard_normal((tokens, world.vocabulary)) - 2.0
    sure = generator.random(tokens) < world.near_deterministic
    first = logits.argmax(axis=1)
    logits[np.arange(tokens), first] += np.where(sure, generator.uniform(6.0, 14.0, tokens), 0.0)
    return logits


def scored_in(world: World, tables: MeaningTables, token_ids, rollout_logprobs, candidates=()) -> ScoredTokens:
    """What the world's trainer scores of tokens: to the bit what an engine without noise reports of them."""
    sequence_T = np.repeat(np.arange(world.sequences), world.length)
    prompt_S = np.arange(world.sequences) // world.samples
    scored = tables.scored(world.trainer, token_ids, rollout_logprobs, candidates, sequence_T, prompt_S)
    own_T = tables.distribution(world.trainer)[np.arange(len(token_ids)), token_ids]
    return replace(scored, trainer_logprobs_T=own_T)


def simulate(world: World) -> ScoredTokens:
    """Sample, report and score in the given world."""
    return simulate_log(world)[1]


def simulate_log(world: World) -> tuple[TokenBatch, ScoredTokens]:
    """The same, and what a log of it holds: both sides' logprobs and lists of five, the trainer's entropies."""
    generator = np.random.default_rng(world.seed)
    logits = logits_of(world, generator)
    seen = generator.random(logits.shape) < 0.05
    seen[np.arange(len(logits)), logits.argmax(axis=1)] = generator.random(len(logits)) < 0.5
    engine = logits + world.noise * generator.standard_normal(logits.shape)
    drawn_from = logprobs_of(engine, seen, world.sampled)
    token_ids = draw(drawn_from, generator)
    reported = drawn_from if world.reported is None else logprobs_of(engine, seen, world.reported)
    rollout_logprobs = reported[np.arange(len(token_ids)), token_ids]
    candidates = candidate_semantics(world.requested or world.sampled, world.trainer.temperature, world.trainer)
    tables = MeaningTables(logits, seen)
    scored = scored_in(world, tables, token_ids, rollout_logprobs, candidates)
    tops = {}
    for side, logprobs in (("rollout", reported), ("trainer", tables.distribution(world.trainer))):
        best = np.argsort(-logprobs, axis=1)[:, :5]
        tops |= {f"{side}_top_ids_TK": best, f"{side}_top_logprobs_TK": np.take_along_axis(logprobs, best, axis=1)}
    batch = TokenBatch(
        rollout_logprobs_T=rollout_logprobs,
        trainer_logprobs_T=scored.trainer_logprobs_T,
        token_id_T=token_ids,
        position_T=np.tile(np.arange(world.length), world.sequences),
        sequence_T=scored.sequence_T,
        prompt_S=scored.prompt_S,
        prompt_names_S=scored.prompt_S,
        sample_names_S=np.arange(world.sequences) % world.samples,
        token_columns={"trainer_entropy": scored.entropy_T, "seen_before": seen[np.arange(len(seen)), token_ids]},
        **tops,
    )
    return batch, scored


def another(world: World, seed: int) -> World:
    """The same world with other dice."""
    return replace(world, seed=seed)
