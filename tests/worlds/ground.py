"""What the worlds of one trial share: a model's logits at every token, and how the rollouts were organised.

All covariates vary in every world, whatever is wrong with it: versions, cached prefixes, batches, prompt lengths. A
fault that follows one of them has to be found among the others.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.meaning.candidates import Semantics
from worlds.generator import Generator, Logits
from worlds.meaning_tables import MeaningTables

TRAINER_VERSION = 10
LAGS = 5
BATCHES = 8
WEIGHT_RANK = 12
# Of all sequences; multiples of the second fill (0, 1) evenly, and follow neither prompts nor batches.
CHANGED, GOLDEN = 0.35, (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class Ground:
    """T tokens in S sequences, V token ids.

    logits_TV: the trainer's. base_TV: of the model that training began with. state_TR: hidden states that move slowly
    along a sequence; a change of weights moves logits by state_TR @ (R, V). seen_TV: the prompt holds the token.
    """

    generator: Generator
    logits_TV: Logits
    base_TV: Logits
    state_TR: Logits
    seen_TV: NDArray[np.bool_]
    sequence_T: Integers
    position_T: Integers
    prompt_S: Integers
    prompt_tokens_S: Integers
    cached_S: Integers
    batch_S: Integers
    version_T: Integers
    # Whether it is a turn after a changed history.
    changed_S: NDArray[np.bool_]

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.sequence_T)

    @property
    def absolute_T(self) -> Integers:
        """Tokens before each one, the prompt's included."""
        return self.prompt_tokens_S[self.sequence_T] + self.position_T

    @cached_property
    def meanings(self) -> MeaningTables:
        """What the trainer's logits give under any sampling parameters."""
        return MeaningTables(self.logits_TV, self.seen_TV)

    @property
    def plain(self) -> Semantics:
        """The sampling parameters of a world without a semantic fault."""
        return Semantics(self.generator.temperature)

    def drift(self, rng: np.random.Generator) -> Logits:
        """(T, V) of unit variance: what one change of the weights does to the logits."""
        weights = rng.standard_normal((WEIGHT_RANK, self.generator.vocabulary), dtype=np.float32)
        return self.state_TR @ weights / np.float32(np.sqrt(WEIGHT_RANK))


def new_ground(generator: Generator, rng: np.random.Generator) -> Ground:
    """A fresh model and a fresh organisation of rollouts."""
    lengths_S = generator.lengths(generator.sequences, rng)
    sequence_T = np.repeat(np.arange(generator.sequences), lengths_S)
    ends_S = np.cumsum(lengths_S)
    position_T = np.arange(ends_S[-1]) - np.repeat(ends_S - lengths_S, lengths_S)
    prompt_S = np.repeat(np.arange(generator.prompts), generator.samples)
    logits_TV = generator.logits(len(sequence_T), rng)
    state_TR = _slow_states(sequence_T, rng)
    tuned = rng.standard_normal((WEIGHT_RANK, generator.vocabulary), dtype=np.float32)
    seen_PV = rng.random((generator.prompts, generator.vocabulary)) < 0.15
    return Ground(
        generator=generator,
        logits_TV=logits_TV,
        base_TV=logits_TV + np.float32(0.5 / np.sqrt(WEIGHT_RANK)) * (state_TR @ tuned),
        state_TR=state_TR,
        seen_TV=seen_PV[prompt_S[sequence_T]],
        sequence_T=sequence_T,
        position_T=position_T,
        prompt_S=prompt_S,
        prompt_tokens_S=rng.integers(10, 200, generator.prompts)[prompt_S],
        cached_S=np.where(rng.random(generator.sequences) < 0.5, 16 * rng.integers(1, 8, generator.sequences), 0),
        batch_S=rng.choice(BATCHES, generator.sequences, p=_uneven(BATCHES)),
        version_T=_versions(lengths_S, rng),
        # Nothing is drawn for it, so worlds stay what they were.
        changed_S=np.arange(generator.sequences) * GOLDEN % 1.0 < CHANGED,
    )


def _uneven(batches: int) -> Floats:
    sizes: Floats = np.arange(1, batches + 1, dtype=np.float64)
    shares: Floats = sizes / sizes.sum()
    return shares


def _slow_states(sequence_T: Integers, rng: np.random.Generator) -> Logits:
    """(T, R): half of a state is the sequence's, a quarter is common to all, the rest is the token's own."""
    sequences = int(sequence_T.max()) + 1
    shared = rng.standard_normal((1, WEIGHT_RANK), dtype=np.float32)
    of_sequence = rng.standard_normal((sequences, WEIGHT_RANK), dtype=np.float32)[sequence_T]
    own = rng.standard_normal((len(sequence_T), WEIGHT_RANK), dtype=np.float32)
    state_TR: Logits = np.float32(0.5) * shared + np.float32(0.707) * of_sequence + np.float32(0.5) * own
    return state_TR


def _versions(lengths_S: Integers, rng: np.random.Generator) -> Integers:
    """Weights' version per token: each sequence starts at some lag, and half of them see one update on the way."""
    versions = []
    for length in lengths_S:
        version_L = np.full(length, TRAINER_VERSION - rng.integers(LAGS))
        if rng.random() < 0.5 and version_L[0] < TRAINER_VERSION:
            version_L[rng.integers(length // 4, 3 * length // 4) :] += 1
        versions.append(version_L)
    return np.concatenate(versions).astype(np.int64)
