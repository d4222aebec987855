"""The share of a machine that one of several cells gets: whole GPUs, or cores of the processor.

A processor is split into equal parts, because the number of threads decides the order of summation: a cell on one part
computes what a machine of so many cores does, and has its identity (accelerator_identity.py). GPUs are not split.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.errors import NotFinished


@dataclass(frozen=True)
class Share:
    """One GPU, or some cores by their numbers."""

    gpu: Device | None = None
    cores: tuple[int, ...] = ()


@dataclass(frozen=True)
class Given:
    """Shares of one cell, by their places."""

    # Those that no other cell may have meanwhile.
    taken: tuple[int, ...]
    # Those that it runs on.
    shown: tuple[int, ...]


def split(accelerator: Accelerator, parts: int) -> tuple[Accelerator, tuple[Share, ...]]:
    """Return the machine as each of several cells sees it, and its shares: single GPUs, or cores in `parts` parts.

    Raises NotFinished for more parts than cores.
    """
    if accelerator.kind == "cuda":
        return accelerator, tuple(Share(gpu=device) for device in accelerator.devices)
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // parts
    if not each:
        raise NotFinished(
            f"{parts} cells at once need as many cores, and this process may use {len(cores)}",
            f"Give at most --jobs {len(cores)}.",
        )
    shares = tuple(Share(cores=tuple(cores[part * each : (part + 1) * each])) for part in range(parts))
    return replace(accelerator, cores=each), shares


def share_of(shares: Sequence[Share], free: Sequence[int], gpus: int | None, *, timed: bool) -> Given | None:
    """Return the first of the free shares for a cell that needs so many GPUs (None: all), or None if it has to wait.

    timed: the cell must run alone on a processor, and takes every share.
    """
    if not shares:
        return Given((), ())
    on_gpus = shares[0].gpu is not None
    wanted = 1 if not on_gpus else len(shares) if gpus is None else min(max(1, gpus), len(shares))
    shown = tuple(free[:wanted])
    if len(shown) < wanted:
        return None
    if not timed:
        return Given(shown, shown)
    taken = shown if on_gpus else tuple(range(len(shares)))
    return Given(taken, shown) if set(taken) <= set(free) else None
