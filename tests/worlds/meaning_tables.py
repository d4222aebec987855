"""What fixed logits give under any sampling parameters, each table computed once for all worlds on the same ground.

vLLM's order: a bias, penalties, temperature, min_p, top-k, top-p.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.meaning.candidates import MIN_P, NUCLEUS, TOP_K, Semantics
from rlaudit.meaning.scored_tokens import ScoredTokens
from worlds.generator import Logits


@dataclass(frozen=True, eq=False)
class Meaning:
    """Normaliser (of the kept, scaled logits) and the least scaled logit that is kept, per token."""

    normaliser_T: Floats
    cut_T: Floats


@dataclass(frozen=True, eq=False)
class TrainerTable:
    """The trainer's own distribution: mass kept by filters at each grid point, entropy, largest probability."""

    nucleus_TG: Floats
    top_k_TG: Floats
    min_p_TG: Floats
    entropy_T: Floats
    largest_T: Floats


def penalised(logits_TV: Logits, seen_TV: NDArray[np.bool_], semantics: Semantics) -> Logits:
    """Logits after the bias and the penalties. What was seen was generated once."""
    if semantics.logit_bias:
        logits_TV = logits_TV.copy()
        for token, added in semantics.logit_bias:
            logits_TV[:, token] += added
    penalty, subtracted = semantics.repetition_penalty, semantics.presence_penalty + semantics.frequency_penalty
    if penalty != 1:
        penalty = np.float32(penalty)
        logits_TV = np.where(seen_TV, np.where(logits_TV > 0, logits_TV / penalty, logits_TV * penalty), logits_TV)
    return logits_TV - np.float32(subtracted) * seen_TV if subtracted else logits_TV


def meaning_of(sorted_TV: Logits, semantics: Semantics) -> Meaning:
    """From logits sorted downwards. Ties at an edge are kept together."""
    scaled = sorted_TV / np.float32(semantics.temperature)
    mass = np.exp(scaled - scaled[:, :1])
    kept_T = np.full(len(scaled), scaled.shape[1], dtype=np.int64)
    if semantics.min_p > 0:
        kept_T = (mass >= semantics.min_p).sum(axis=1)
    if semantics.top_k > 0:
        kept_T = np.minimum(kept_T, semantics.top_k)
    through = np.cumsum(mass, axis=1, dtype=np.float64)
    rows = np.arange(len(scaled))
    if semantics.top_p < 1:
        total_T = through[rows, kept_T - 1]
        before = through - mass
        kept_T = np.minimum(kept_T, np.maximum((before < semantics.top_p * total_T[:, None]).sum(axis=1), 1))
    normaliser_T = np.log(through[rows, kept_T - 1]) + scaled[:, 0]
    full = kept_T == scaled.shape[1]
    return Meaning(normaliser_T, np.where(full, -np.inf, scaled[rows, kept_T - 1]))


def logprobs_of(logits_TV: Logits, seen_TV: NDArray[np.bool_], semantics: Semantics) -> Logits:
    """(T, V) logprobs, -inf outside the support."""
    processed = penalised(logits_TV, seen_TV, semantics)
    if semantics.filtered:
        meaning = meaning_of(-np.sort(-processed, axis=1), semantics)
        scaled = processed / np.float32(semantics.temperature)
        inside = scaled >= meaning.cut_T[:, None].astype(scaled.dtype)
        return np.where(inside, scaled - meaning.normaliser_T[:, None].astype(scaled.dtype), scaled.dtype.type(-np.inf))
    scaled = processed / np.float32(semantics.temperature)
    scaled = scaled - scaled.max(axis=1, keepdims=True)
    logprobs: Logits = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True, dtype=np.float64)).astype(scaled.dtype)
    return logprobs


class MeaningTables:
    """Tables of one set of logits, filled as they are asked for."""

    def __init__(self, logits_TV: Logits, seen_TV: NDArray[np.bool_]) -> None:
        self._logits_TV, self._seen_TV = logits_TV, seen_TV
        self._changed: dict[Semantics, Logits] = {}
        self._sorted: dict[Semantics, Logits] = {}
        self._meanings: dict[Semantics, Meaning] = {}
        self._distributions: dict[Semantics, Logits] = {}
        self._trainers: dict[Semantics, TrainerTable] = {}

    def logprobs(self, semantics: Semantics, token_T: Integers) -> Floats:
        """(T,) logprobs of these tokens."""
        scaled_T = self._changed_by(semantics)[np.arange(len(token_T)), token_T] / np.float32(semantics.temperature)
        meaning = self._meaning(semantics)
        inside_T = scaled_T >= meaning.cut_T.astype(scaled_T.dtype)
        return np.where(inside_T, scaled_T.astype(np.float64) - meaning.normaliser_T, -np.inf)

    def distribution(self, semantics: Semantics) -> Logits:
        """(T, V) logprobs of every token."""
        if semantics not in self._distributions:
            self._distributions[semantics] = logprobs_of(self._logits_TV, self._seen_TV, semantics)
        return self._distributions[semantics]

    def scored(
        self,
        trainer: Semantics,
        token_T: Integers,
        reported_T: Floats,
        candidates: Sequence[Semantics],
        sequence_T: Integers,
        prompt_S: Integers,
    ) -> ScoredTokens:
        """What a trainer scores of these tokens."""
        table = self.trainer_table(trainer)
        rank_T, mass_above_T = self.rank_and_mass_above(trainer, token_T)
        under = [self.logprobs(one, token_T) for one in candidates]
        return ScoredTokens(
            rollout_logprobs_T=reported_T,
            trainer_logprobs_T=self.logprobs(trainer, token_T),
            entropy_T=table.entropy_T,
            rank_T=rank_T,
            mass_above_T=mass_above_T,
            max_probability_T=table.largest_T,
            candidate_logprobs_TC=np.stack(under, axis=1) if under else np.empty((len(token_T), 0)),
            nucleus_mass_TG=table.nucleus_TG,
            top_k_mass_TG=table.top_k_TG,
            min_p_mass_TG=table.min_p_TG,
            sequence_T=sequence_T,
            prompt_S=prompt_S,
            candidates=tuple(candidates),
        )

    def _meaning(self, semantics: Semantics) -> Meaning:
        if semantics not in self._meanings:
            self._meanings[semantics] = meaning_of(self._sorted_by(semantics), semantics)
        return self._meanings[semantics]

    def _changed_by(self, semantics: Semantics) -> Logits:
        alone = replace(semantics.unfiltered, temperature=1.0)
        if alone not in self._changed:
            self._changed[alone] = penalised(self._logits_TV, self._seen_TV, alone)
        return self._changed[alone]

    def _sorted_by(self, semantics: Semantics) -> Logits:
        alone = replace(semantics.unfiltered, temperature=1.0)
        if alone not in self._sorted:
            self._sorted[alone] = -np.sort(-self._changed_by(alone), axis=1)
        return self._sorted[alone]

    def rank_and_mass_above(self, trainer: Semantics, token_T: Integers) -> tuple[Integers, Floats]:
        """(T,) rank (1 = most probable) and mass strictly above each token, of the trainer's distribution."""
        logits_TV, meaning = self._changed_by(trainer), self._meaning(trainer)
        above_TV = logits_TV > logits_TV[np.arange(len(token_T)), token_T][:, None]
        scaled = logits_TV / np.float32(trainer.temperature)
        kept_TV = above_TV & (scaled >= meaning.cut_T[:, None].astype(scaled.dtype))
        mass_TV = np.where(kept_TV, np.exp(scaled - meaning.normaliser_T[:, None].astype(scaled.dtype)), 0.0)
        return above_TV.sum(axis=1) + 1, mass_TV.sum(axis=1).astype(np.float64)

    def trainer_table(self, trainer: Semantics) -> TrainerTable:
        """Of a trainer's own distribution."""
        if trainer not in self._trainers:
            self._trainers[trainer] = self._new_table(trainer)
        return self._trainers[trainer]

    def _new_table(self, trainer: Semantics) -> TrainerTable:
        scaled, meaning = self._sorted_by(trainer) / np.float32(trainer.temperature), self._meaning(trainer)
        logprobs = scaled.astype(np.float64) - meaning.normaliser_T[:, None]
        mass = np.where(scaled >= meaning.cut_T[:, None].astype(scaled.dtype), np.exp(logprobs), 0.0)
        through = np.cumsum(mass, axis=1)
        before = through - mass
        rows = np.arange(len(mass))

        def up_to(counts_T: Integers) -> Floats:
            return np.where(counts_T > 0, through[rows, np.maximum(counts_T, 1) - 1], 0.0).clip(0.0, 1.0)

        size = mass.shape[1]
        return TrainerTable(
            nucleus_TG=np.stack([up_to((before <= edge).sum(axis=1)) for edge in NUCLEUS], axis=1),
            top_k_TG=np.stack([through[:, min(k, size) - 1].clip(0.0, 1.0) for k in TOP_K], axis=1),
            min_p_TG=np.stack([up_to((mass >= edge * mass[:, :1]).sum(axis=1)) for edge in MIN_P], axis=1),
            entropy_T=-(mass * logprobs).sum(axis=1),
            largest_T=mass[:, 0],
        )
