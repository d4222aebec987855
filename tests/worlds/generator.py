"""A family of simulated models: how logits, lengths and numerical noise look, apart from any fault."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Integers
from rlaudit.discover import discover
from worlds import generators

Logits = NDArray[np.float32]
Scales = NDArray[Any]


@dataclass(frozen=True)
class Generator:
    """prompts x samples sequences over a vocabulary.

    lengths(sequences, rng): (S,) tokens of each. logits(tokens, rng): (T, V), as peaked as a language model's.
    noise(scale_T, sequence_T, rng): (T, V) errors of an engine's logits whose standard deviation per token is scale_T.
    floor: standard deviation (nats) of that noise between two engines with which nothing is wrong.
    filters(dose, rng): sampling parameters of a truncation of dose 0, 1 or 2 (low, middle, top).
    """

    name: str
    prompts: int
    samples: int
    vocabulary: int
    temperature: float
    floor: float
    lengths: Callable[[int, np.random.Generator], Integers]
    logits: Callable[[int, np.random.Generator], Logits]
    noise: Callable[[Scales, Integers, np.random.Generator], Logits]
    filters: Callable[[int, np.random.Generator], dict[str, float]]

    @property
    def sequences(self) -> int:
        """S."""
        return self.prompts * self.samples


def all_generators() -> dict[str, Generator]:
    """Every family of simulated models, by name."""
    return discover(generators, "GENERATOR", Generator)
