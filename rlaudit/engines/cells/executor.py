"""Where cells run: whoever has a cell submits it and asks for the answer later.

This machine is one place; others (several GPUs at once, Ray, a share of a cluster's jobs) answer to the same calls. A
job names rlaudit's scripts by their place in the package, so that it can be run where the package lies elsewhere.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rlaudit.engines.cells.cell import Cell, run_cell
from rlaudit.engines.cells.launch import NO_MEMORY, Event, Outcome
from rlaudit.engines.hardware.gpu_memory import GpuMemory

MEMORY_TIMEOUT_SECONDS = 120.0


class Submitted(Protocol):
    """A cell that an executor has taken."""

    def result(self) -> Outcome:
        """How the cell ended, once it has. Raises OSError where its files cannot be written or read."""

    def cancel(self) -> None:
        """Nobody waits for it any more: what has not begun does not begin, and what runs is ended."""


class Executor(Protocol):
    """Runs cells, each in a folder of its own (cell.py), wherever that is."""

    def submit(self, cell: Cell, on_event: Callable[[Event], None] = lambda event: None) -> Submitted:
        """Take a cell; `on_event` is told what its process says while it runs."""


class OneAtATime:
    """This machine, all of it for one cell: a cell runs when its result is asked for, in the thread that asks.

    `folder` is where cells lie. `note` is told in a sentence when the GPUs' memory does not get free before a start.
    """

    def __init__(self, folder: Path, memory: GpuMemory, note: Callable[[str], None] = lambda sentence: None) -> None:
        self._folder, self._memory, self._note = folder, memory, note

    def submit(self, cell: Cell, on_event: Callable[[Event], None] = lambda event: None) -> Submitted:
        """Take a cell."""
        return _Waiting(lambda: self._run(cell, on_event))

    def _run(self, cell: Cell, on_event: Callable[[Event], None]) -> Outcome:
        if cell.uses_accelerator:
            # Let the last engine's memory go first.
            more_mib = self._memory.wait_until_free(MEMORY_TIMEOUT_SECONDS)
            if more_mib:
                self._note(f"{more_mib} MiB more of the GPU are in use than before; starting anyway")
        return self._explained(run_cell(self._folder, cell, on_event))

    def _explained(self, outcome: Outcome) -> Outcome:
        """The outcome; one that ran out of memory beside others on the GPU says who they are and what to do."""
        failure = outcome.failure
        if failure is None or failure.boundary != NO_MEMORY:
            return outcome
        # What the engine itself held has to go first.
        self._memory.wait_until_free(MEMORY_TIMEOUT_SECONDS)
        others = self._memory.held_by_others()
        if others is None:
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
