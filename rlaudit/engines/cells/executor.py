"""Where cells run: whoever has a cell submits it and asks for the answer later.

This machine is one place, one cell after the other (here) or several at once (at_once.py); others (a share of a
cluster's jobs, Ray) answer to the same calls. A job names rlaudit's scripts by their place in the package, so that it
can be run where the package lies elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from rlaudit.engines.cells.cell import Cell, run_cell
from rlaudit.engines.cells.launch import NO_MEMORY, Event, Outcome
from rlaudit.engines.hardware.gpu_memory import GpuMemory

MEMORY_TIMEOUT_SECONDS = 120.0

Note = Callable[[str], None]
OnEvent = Callable[[Event], None]


class Submitted(Protocol):
    """A cell that an executor has taken."""

    def result(self) -> Outcome:
        """How the cell ended, once it has. Raises OSError where its files cannot be written or read, and NotFinished
        where the executor cannot run it any more."""

    def cancel(self) -> None:
        """Nobody waits for it any more: what has not begun does not begin, and what runs is ended."""


class Executor(Protocol):
    """Runs cells, each in a folder of its own (cell.py), wherever that is.

    Left as a context manager, it has ended everything that it had been given.
    """

    def submit(
        self, cell: Cell, title: str = "", on_event: OnEvent = lambda event: None, number: int | None = None
    ) -> Submitted:
        """Take a cell; `title` names it in sentences, `on_event` is told what its process says while it runs.

        number: the how-manieth of the run's own cells it is, counting those that are there; None for one that has to
        be there before a run can go on (its prompts as token ids, the trainer tried).
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class OneAtATime:
    """This machine, all of it for one cell: a cell runs when its result is asked for, in the thread that asks.

    `folder` is where cells lie. `note` is told in a sentence when the GPUs' memory does not get free before a start.
    """

    def __init__(self, folder: Path, memory: GpuMemory, note: Note = lambda sentence: None) -> None:
        self._folder, self._memory, self._note = folder, memory, note

    def submit(
        self, cell: Cell, title: str = "", on_event: OnEvent = lambda event: None, number: int | None = None
    ) -> Submitted:
        """Take a cell."""
        return _Waiting(lambda: run_here(self._folder, cell, on_event, [self._memory], self._note))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing runs when nobody asks."""


def run_here(
    folder: Path,
    cell: Cell,
    on_event: OnEvent,
    memory: Sequence[GpuMemory],
    note: Note,
    cancelled: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a cell on this machine, in this thread, with GPUs of this `memory`.

    Raises OSError where its files cannot be written or read, Cancelled once `cancelled` says so.
    """
    if cell.uses_accelerator:
        # Let the last engine's memory go first.
        more_mib = max((one.wait_until_free(MEMORY_TIMEOUT_SECONDS) for one in memory), default=0)
        if more_mib:
            note(f"{more_mib} MiB more of the GPU are in use than before; starting anyway")
    return _explained(run_cell(folder, cell, on_event, cancelled), memory)


def _explained(outcome: Outcome, memory: Sequence[GpuMemory]) -> Outcome:
    """The outcome; one that ran out of memory beside others on the GPU says who they are and what to do."""
    failure = outcome.failure
    if failure is None or failure.boundary != NO_MEMORY:
        return outcome
    # What the engine itself held has to go first.
    for one in memory:
        one.wait_until_free(MEMORY_TIMEOUT_SECONDS)
    others = ", ".join(held for one in memory if (held := one.held_by_others()) is not None)
    if not others:
        return outcome
    advice = f"{others} are in use by others: free them, or lower gpu_memory_utilization in engine_args"
    return replace(outcome, failure=replace(failure, message=f"{failure.message} ({advice})"))


class _Waiting:
    """A cell that runs when it is asked for, once."""

    def __init__(self, run: Callable[[], Outcome]) -> None:
        self._run: Callable[[], Outcome] | None = run
        self._outcome: Outcome | None = None

    def result(self) -> Outcome:
        if self._outcome is None:
            if self._run is None:
                raise RuntimeError("the result of a cell that was cancelled was asked for")
            self._outcome = self._run()
        return self._outcome

    def cancel(self) -> None:
        self._run = None
