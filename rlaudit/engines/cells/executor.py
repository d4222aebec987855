"""Where cells run: a run requests cells, and gets their outcomes in the order of its requests.

Cells run on this machine one after the other (here) or several at once (at_once.py); a Ray cluster (on_ray.py) has the
same interface. A job names rlaudit's scripts by their path in the package, so that it
also runs on a machine that has the package in another folder.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from rlaudit.engines.cells.cell import Cell, run_cell
from rlaudit.engines.cells.launch import NO_MEMORY, Event, Outcome
from rlaudit.engines.hardware.gpu_memory import GpuMemory

MEMORY_TIMEOUT_SECONDS = 120.0

Note = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """A run's request for a cell."""

    cell: Cell
    # Names the cell in sentences.
    title: str = ""


# Gets the events that a cell's process reports while it runs.
OnEvent = Callable[[Asked, Event], None]


def unheard(request: Asked, event: Event) -> None:
    """Ignore an event."""


class Executor(Protocol):
    """Runs cells, each in its own folder (cell.py)."""

    def run(self, requests: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take these cells now, and yield their outcomes in this order.

        Raises OSError if the files of a cell cannot be written or read, and NotFinished if one cannot be run any more.
        Closing the iterator ends the cells that run, and drops the others.
        """


class OneAtATime:
    """Runs one cell after the other on this machine, in the thread that takes the outcome.

    folder: holds the cells. note: gets a sentence if the GPUs' memory does not get free before a start.
    """

    def __init__(self, folder: Path, memory: GpuMemory, note: Note = lambda sentence: None) -> None:
        self._folder, self._memory, self._note = folder, memory, note

    def run(self, requests: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Yield the outcomes, one cell after the other."""
        for request in requests:
            yield run_here(self._folder, request, on_event, [self._memory], self._note)


def run_here(
    folder: Path,
    request: Asked,
    on_event: OnEvent,
    memory: Sequence[GpuMemory],
    note: Note,
    cancelled: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a cell on this machine, in this thread, on the GPUs of this `memory`.

    Raises OSError if its files cannot be written or read, Cancelled once `cancelled` returns True.
    """
    if request.cell.uses_accelerator:
        # The last engine may still hold its memory.
        more_mib = max((gpus.wait_until_free(MEMORY_TIMEOUT_SECONDS) for gpus in memory), default=0)
        if more_mib:
            note(f"{more_mib} MiB more of the GPU are in use than before; starting anyway")
    return _explained(run_cell(folder, request.cell, lambda event: on_event(request, event), cancelled), memory)


def _explained(outcome: Outcome, memory: Sequence[GpuMemory]) -> Outcome:
    """Return the outcome; if it ran out of memory that other processes hold, its message tells what to do."""
    failure = outcome.failure
    if failure is None or failure.boundary != NO_MEMORY:
        return outcome
    # The engine itself may still hold its memory.
    for gpus in memory:
        gpus.wait_until_free(MEMORY_TIMEOUT_SECONDS)
    others = ", ".join(held for gpus in memory if (held := gpus.held_by_others()) is not None)
    if not others:
        return outcome
    advice = (
        f"{others} are in use by others (see nvidia-smi): free them, or lower gpu_memory_utilization in engine_args"
    )
    return replace(outcome, failure=replace(failure, message=f"{failure.message} ({advice})"))
