"""What is wrong with a world: changes that compose, so that two faults can be planted in one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.meaning.candidates import Semantics
from rlaudit.tokens.token_batch import TokenBatch
from worlds.generator import Logits
from worlds.ground import Ground


class Dose(IntEnum):
    """How much of a fault is planted: around, above and far above what can be noticed.

    The doses of each cause were chosen for that on the development generator (`confusion.py` has the targets).
    """

    LOW = 0
    MIDDLE = 1
    TOP = 2


Scale = Callable[[Ground, np.random.Generator], Floats]
Drift = Callable[[Ground, np.random.Generator], Logits]
Edit = Callable[[TokenBatch, np.random.Generator], TokenBatch]


@dataclass(frozen=True)
class Plant:
    """sampled, reported (None: as sampled), trainer, requested (None: as sampled): meanings of the logprobs.

    scales: (T,) standard deviations of more noise on the engine's logits, nats. drifts: (T, V) added to them.
    head_at: size of the largest logits that the engine's head rounds to bfloat16; None for a float32 head.
    edits: changes of the recorded table.
    """

    sampled: Semantics
    trainer: Semantics
    reported: Semantics | None = None
    requested: Semantics | None = None
    scales: tuple[Scale, ...] = ()
    drifts: tuple[Drift, ...] = ()
    head_at: float | None = None
    edits: tuple[Edit, ...] = ()

    def with_scale(self, scale: Scale) -> "Plant":
        """More noise."""
        return replace(self, scales=(*self.scales, scale))

    def with_drift(self, drift: Drift) -> "Plant":
        """Another change of the logits."""
        return replace(self, drifts=(*self.drifts, drift))

    def with_edit(self, edit: Edit) -> "Plant":
        """Another change of the record."""
        return replace(self, edits=(*self.edits, edit))


def healthy(ground: Ground) -> Plant:
    """Nothing wrong."""
    return Plant(sampled=ground.plain, trainer=ground.plain)
