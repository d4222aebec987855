"""Tokens whose two sides are far apart, and the numbers that most of them have on one side: counts of a whole log.

A number that stands beside logprobs of all sizes was put in (`causes/placed_logprobs.py`). Only numbers that repeat in
a batch are kept, and of them the most frequent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.tokens.token_batch import TokenBatch

# Nats. A token that top-p of 0.4 or more keeps alone is nearer.
FAR = 1.0
KEPT = 8


@dataclass(frozen=True)
class Repeated:
    """A number that tokens far apart have on one side: how many of them, in how many sequences."""

    tokens: int
    sequences: int


@dataclass(frozen=True)
class FarTokens:
    """How many tokens are far apart, and the numbers that repeat among them, by side and number; counts add up."""

    tokens: int = 0
    repeated: Mapping[tuple[str, float], Repeated] = field(default_factory=dict)

    def __add__(self, other: "FarTokens") -> "FarTokens":
        """Return the counts of both."""
        both: dict[tuple[str, float], Repeated] = dict(self.repeated)
        for number, more in other.repeated.items():
            known = both.get(number, Repeated(0, 0))
            both[number] = Repeated(known.tokens + more.tokens, known.sequences + more.sequences)
        kept = sorted(both, key=lambda number: (-both[number].tokens, number))[: 2 * KEPT]
        return FarTokens(self.tokens + other.tokens, {number: both[number] for number in kept})

    def most(self) -> tuple[Repeated, float, str]:
        """Return the number that most of them have, with its value and side; none of them, if no number repeats."""
        if not self.repeated:
            return Repeated(0, 0), 0.0, "rollout"
        side, number = max(self.repeated, key=lambda number: (self.repeated[number].tokens, number))
        return self.repeated[side, number], number, side


def far_tokens(batch: TokenBatch, apart_T: Floats) -> FarTokens:
    """Return the counts of a batch. apart_T: what its two sides differ by, NaN for tokens that do not count."""
    # The trainer's filters make a token impossible: that is no number that was put in.
    far = np.flatnonzero((apart_T > FAR) & np.isfinite(apart_T))
    sequence_F, repeated = batch.sequence_T[far], {}
    for side, logprobs_T in (("rollout", batch.rollout_logprobs_T), ("trainer", batch.trainer_logprobs_T)):
        numbers, number_F, counts = np.unique(logprobs_T[far], return_inverse=True, return_counts=True)
        for place in np.argsort(-counts, kind="stable")[:KEPT].tolist():
            if counts[place] > 1:
                sequences = len(np.unique(sequence_F[number_F == place]))
                repeated[side, float(numbers[place])] = Repeated(int(counts[place]), sequences)
    return FarTokens(len(far), repeated)
