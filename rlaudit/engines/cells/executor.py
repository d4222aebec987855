"""Where cells run: a run asks for cells, and their outcomes come in the order in which it asked.

This machine is one place, one cell after the other (here) or several at once (at_once.py); others (a share of a
cluster's jobs, Ray) answer to the same call. A job names rlaudit's scripts by their place in the package, so that it
can be run where the package lies elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self

from rlaudit.engines.cells.cell import Cell, run_cell
from rlaudit.engines.cells.launch import NO_MEMORY, Event, Outcome
from rlaudit.engines.hardware.gpu_memory import GpuMemory

MEMORY_TIMEOUT_SECONDS = 120.0

Note = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """A cell that a run asks for; `title` names it in sentences.

    number: its place among the run's own cells, those that are done already included; None for one that has to be done
    before a run can go on (its prompts as token ids, the trainer tried).
    """

    cell: Cell
    title: str = ""
    number: int | None = None


# Gets what a cell's process reports while it runs.
OnEvent = Callable[[Asked, Event], None]


def unheard(asked: Asked, event: Event) -> None:
    """Pass on nothing of what a cell reports."""


class Executor(Protocol):
    """Runs cells, each in a folder of its own (cell.py), wherever that is.

    Left as a context manager, it has ended everything that it had been given.
    """

    def run(self, asked: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take these cells now, and yield their outcomes in this order.

        Raises OSError if the files of a cell cannot be written or read, and NotFinished if one cannot be run any more.
        Where no more outcomes are wanted (`close`), cells that have not begun do not begin, and those that run are
        ended.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class OneAtATime:
    """This machine, all of it for one cell: a cell runs when its outcome is asked for, in the thread that asks.

    `folder` is where cells lie. `note` gets a sentence when the GPUs' memory does not get free before a start.
    """

    def __init__(self, folder: Path, memory: GpuMemory, note: Note = lambda sentence: None) -> None:
        self._folder, self._memory, self._note = folder, memory, note

    def run(self, asked: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Yield the outcomes, one cell after the other."""
        for one in asked:
            yield run_here(self._folder, one, on_event, [self._memory], self._note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing runs unless its outcome is asked for."""


def run_here(
    folder: Path,
    asked: Asked,
    on_event: OnEvent,
    memory: Sequence[GpuMemory],
    note: Note,
    cancelled: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a cell on this machine, in this thread, with GPUs of this `memory`.

    Raises OSError if its files cannot be written or read, Cancelled once `cancelled` says so.
    """
    if asked.cell.uses_accelerator:
        # Let the last engine's memory go first.
        more_mib = max((one.wait_until_free(MEMORY_TIMEOUT_SECONDS) for one in memory), default=0)
        if more_mib:
            note(f"{more_mib} MiB more of the GPU are in use than before; starting anyway")
    return _explained(run_cell(folder, asked.cell, lambda event: on_event(asked, event), cancelled), memory)


def _explained(outcome: Outcome, memory: Sequence[GpuMemory]) -> Outcome:
    """Return the outcome; one that ran out of memory beside others on the GPU says so and what to do."""
    failure = outcome.failure
    if failure is None or failure.boundary != NO_MEMORY:
        return outcome
    # What the engine itself held has to go first.
    for one in memory:
        one.wait_until_free(MEMORY_TIMEOUT_SECONDS)
    others = ", ".join(held for one in memory if (held := one.held_by_others()) is not None)
    if not others:
        return outcome
    advice = (
        f"{others} are in use by others (see nvidia-smi): free them, or lower gpu_memory_utilization in engine_args"
    )
    return replace(outcome, failure=replace(failure, message=f"{failure.message} ({advice})"))
