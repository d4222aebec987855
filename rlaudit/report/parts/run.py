"""What a run took, and where it ran."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class MicroBatchFloor:
    """The trainer against itself: the same sequences alone and in their batch."""

    trainer: str
    sequences: int
    tokens: int
    mean_abs: float | None
    median_abs: float | None
    max_abs: float | None
    k3: float | None
    tokens_per_second: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run took, and where it ran."""

    seconds: float
    set_up_seconds: float
    cell_seconds: float
    cells_run: int
    cells_kept: int
    damaged: Sequence[str] | None = None
    sequences_sampled: int
    sequences_scored: int
    peak_memory_mib: float
    micro_batch_floors: Sequence[MicroBatchFloor]
    provenance: Mapping[str, Any]
