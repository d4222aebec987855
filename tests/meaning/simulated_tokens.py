"""Tokens whose sampler, report and trainer are known: the ground truth of the semantic tests.

Logits are peaked as a language model's are: at a share of the positions one token holds nearly all the mass. The
engine's logits are the trainer's plus independent noise, so k3 between the two is about half its variance.
"""

from dataclasses import dataclass, replace

import numpy as np

from rlaudit.meaning.candidates import MIN_P, NUCLEUS, TOP_K, Semantics, candidate_semantics
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


def changed(logits, semantics, seen):
    """(T, V) logits after the bias and the penalties. What was seen was generated once."""
    if semantics.logit_bias:
        logits = logits.copy()
        for token, added in semantics.logit_bias:
            logits[:, token] += added
    penalty = semantics.repetition_penalty
    if penalty != 1:
        logits = np.where(seen, np.where(logits > 0, logits / penalty, logits * penalty), logits)
    return logits - (semantics.presence_penalty + semantics.frequency_penalty) * seen


def logprobs_of(logits, semantics, seen):
    """(T, V) logprobs in the sampler's order: `changed`, temperature, min_p, top-k, top-p; -inf outside the support."""
    scaled = changed(logits, semantics, seen) / semantics.temperature
    scaled = scaled - scaled.max(axis=1, keepdims=True)
    if semantics.min_p > 0:
        scaled = np.where(scaled >= np.log(semantics.min_p), scaled, -np.inf)
    if semantics.top_k > 0:
        edge = -np.partition(-scaled, semantics.top_k - 1, axis=1)[:, semantics.top_k - 1]
        scaled = np.where(scaled >= edge[:, None], scaled, -np.inf)
    if semantics.top_p < 1:
        order = np.argsort(-scaled, axis=1)
        mass = np.exp(np.take_along_axis(scaled, order, axis=1))
        mass /= mass.sum(axis=1, keepdims=True)
        dropped = np.cumsum(mass, axis=1) - mass >= semantics.top_p
        dropped[:, 0] = False
        beyond = np.empty_like(dropped)
        np.put_along_axis(beyond, order, dropped, axis=1)
        scaled = np.where(beyond, -np.inf, scaled)
    return scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))


class Ordered:
    """Tokens of each position from the likeliest on: a filter keeps the first of them, and so a sum tells its mass."""

    def __init__(self, logits, seen, token_ids):
        self.logits, self.seen, self.token_ids = logits, seen, token_ids
        self.by_penalty = {}

    def logprobs_under(self, semantics):
        """(T,) logprobs of the tokens, as logprobs_of has them."""
        below, rank = self._at(semantics)
        rows = np.arange(len(rank))
        scaled = below / semantics.temperature
        own, mass = scaled[rows, rank], np.exp(scaled)
        if semantics.min_p == 0 and semantics.top_k <= 0 and semantics.top_p == 1:
            return own - np.log(mass.sum(axis=1))
        through, kept = np.cumsum(mass, axis=1), np.full(len(rank), scaled.shape[1])
        if semantics.min_p > 0:
            kept = (scaled >= np.log(semantics.min_p)).sum(axis=1)
        if semantics.top_k > 0:
            kept = np.minimum(kept, semantics.top_k)
        if semantics.top_p < 1:
            wanted = semantics.top_p * through[rows, kept - 1]
            kept = np.minimum(kept, 1 + (through < wanted[:, None]).sum(axis=1))
        return np.where(rank < kept, own - np.log(through[rows, kept - 1]), -np.inf)

    def _at(self, semantics):
        plain = replace(semantics.unfiltered, temperature=1.0)
        if plain not in self.by_penalty:
            logits = changed(self.logits, plain, self.seen)
            own = np.take_along_axis(logits, self.token_ids[:, None], axis=1)
            ordered = -np.sort(-logits, axis=1)
            self.by_penalty[plain] = ordered - ordered[:, :1], (logits > own).sum(axis=1)
        return self.by_penalty[plain]


def draw(logprobs, generator):
    """One token per row."""
    through = np.cumsum(np.exp(logprobs), axis=1)
    return (generator.random((len(through), 1)) * through[:, -1:] > through).sum(axis=1)


def logits_of(world, generator):
    """(T, V) logits of a peaked model."""
    tokens = world.sequences * world.length
    spread = generator.uniform(1.5, 3.5, size=(tokens, 1))
    logits = spread * generator.standard_normal((tokens, world.vocabulary)) - 2.0
    sure = generator.random(tokens) < world.near_deterministic
    first = logits.argmax(axis=1)
    logits[np.arange(tokens), first] += np.where(sure, generator.uniform(6.0, 14.0, tokens), 0.0)
    return logits


class Tables:
    """What the trainer knows of every token of the vocabulary; sampling from it is cheap, so nulls can be repeated."""

    def __init__(self, logits, trainer, seen):
        self.logits, self.trainer, self.seen = logits, trainer, seen
        self.logprobs = logprobs_of(logits, trainer, seen)
        probability = np.exp(self.logprobs)
        order = np.argsort(-self.logprobs, axis=1)
        mass = np.take_along_axis(probability, order, axis=1)
        above = np.cumsum(mass, axis=1) - mass
        rank = np.broadcast_to(np.arange(1, logits.shape[1] + 1), order.shape)
        through = above + mass
        self.above, self.rank = np.empty_like(above), np.empty(order.shape, dtype=np.int64)
        np.put_along_axis(self.above, order, above, axis=1)
        np.put_along_axis(self.rank, order, rank, axis=1)
        self.most = mass[:, 0]
        share = mass / mass[:, :1]

        def kept(marks):
            places = np.stack([mark.sum(axis=1) - 1 for mark in marks], axis=1)
            return np.take_along_axis(through, places, axis=1).clip(0.0, 1.0)

        self.nucleus = kept([above <= c for c in NUCLEUS])
        self.top_k = kept([rank <= k for k in TOP_K])
        self.min_p = kept([share >= m for m in MIN_P])
        self.entropy = -(probability * np.where(probability > 0, self.logprobs, 0.0)).sum(axis=1)

    def scored(self, token_ids, rollout_logprobs, world, candidates):
        """ScoredTokens of one sampling."""
        rows = np.arange(len(token_ids))
        ordered = Ordered(self.logits, self.seen, token_ids)
        under = [ordered.logprobs_under(one) for one in candidates]
        return ScoredTokens(
            rollout_logprobs_T=rollout_logprobs,
            trainer_logprobs_T=self.logprobs[rows, token_ids],
            entropy_T=self.entropy,
            rank_T=self.rank[rows, token_ids],
            mass_above_T=self.above[rows, token_ids],
            max_probability_T=self.most,
            candidate_logprobs_TC=np.stack(under, axis=1) if under else np.empty((len(rows), 0)),
            nucleus_mass_TG=self.nucleus,
            top_k_mass_TG=self.top_k,
            min_p_mass_TG=self.min_p,
            sequence_T=np.repeat(np.arange(world.sequences), world.length),
            prompt_S=np.arange(world.sequences) // world.samples,
            candidates=tuple(candidates),
        )


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
    drawn_from = logprobs_of(engine, world.sampled, seen)
    token_ids = draw(drawn_from, generator)
    reported = drawn_from if world.reported is None else logprobs_of(engine, world.reported, seen)
    rollout_logprobs = reported[np.arange(len(token_ids)), token_ids]
    candidates = candidate_semantics(world.requested or world.sampled, world.trainer.temperature, world.trainer)
    tables = Tables(logits, world.trainer, seen)
    scored = tables.scored(token_ids, rollout_logprobs, world, candidates)
    tops = {}
    for side, logprobs in (("rollout", reported), ("trainer", tables.logprobs)):
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
