"""Runs the cells of one run directory and keeps those that are finished."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.engines.cells.cell import SETTLED, Cell, finished
from rlaudit.engines.cells.executor import Asked, Executor
from rlaudit.engines.cells.launch import Event, Failure, Outcome
from rlaudit.engines.cells.seal import Damage
from rlaudit.errors import NotFinished
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.text.progress import Progress, readable


@dataclass(frozen=True)
class _Batch:
    """Cells that were handed to the executor together."""

    # Those without an outcome so far, in the order of `outcomes`.
    waiting: deque[Asked]
    outcomes: Iterator[Outcome]


class Runner:
    """Hands the cells of one run directory to an executor, and keeps those that are finished."""

    def __init__(self, folder: RunFolder, executor: Executor, progress: Progress) -> None:
        self._folder, self._executor, self._progress = folder, executor, progress
        self._kept: dict[str, Outcome | Damage | None] = {}
        self._under_way: dict[str, _Batch] = {}
        self._ended: dict[tuple[str, float | None], Outcome] = {}
        self.cells_run = 0
        self.cells_kept = 0
        self.cell_seconds = 0.0
        self.peak_memory_mib = 0.0

    def directory(self, cell: Cell) -> Path:
        """Return the folder of a cell."""
        return self._folder.cells / cell.key

    def outcome(self, cell: Cell, title: str) -> Outcome:
        """Return the outcome of a cell, kept from before or run now."""
        self._start([Asked(cell, title)])
        return self._await(cell, title)

    def outcomes(self, titled: Sequence[tuple[Cell | Failure, str]]) -> Iterator[Outcome]:
        """Yield the outcome of each titled cell; a Failure in a cell's place is its outcome.

        All cells that have to run are handed to the executor at once, before the first outcome is awaited.
        """
        cells = [(cell, title) for cell, title in titled if isinstance(cell, Cell)]
        self._start([Asked(cell, title) for cell, title in cells])
        return (self._await(cell, title) if isinstance(cell, Cell) else self._failed(cell) for cell, title in titled)

    def needed(self, cell: Cell, title: str, complaint: str) -> Outcome:
        """Return the outcome of a cell. Raises NotFinished with the complaint and the reason if it failed."""
        return self.settled(self.outcome(cell, title), cell, complaint)

    def settled(self, outcome: Outcome, cell: Cell, complaint: str) -> Outcome:
        """Return the outcome. Raises NotFinished with the complaint and the reason if it is a failure."""
        if outcome.status != "ok":
            raise NotFinished(
                f"{complaint}: {outcome.why}",
                f"its log: {self.directory(cell)}/log.txt; the same command goes on after what is finished",
            )
        return outcome

    def _start(self, requests: Sequence[Asked]) -> None:
        """Hand the cells to the executor that are neither finished nor under way."""
        new: dict[str, Asked] = {}
        for request in requests:
            cell = request.cell
            if self._remembered(cell) is None and cell.key not in self._under_way and cell.key not in new:
                self._folder.asked_for(cell.key)
                stored = finished(self._folder.cells, cell)
                self._kept[cell.key] = stored
                if not isinstance(stored, Outcome):
                    new[cell.key] = request
        self._hand_over(new)

    def _hand_over(self, new: Mapping[str, Asked]) -> None:
        batch = _Batch(deque(new.values()), self._executor.run(list(new.values()), self._show_event))
        self._under_way |= dict.fromkeys(new, batch)

    def _await(self, cell: Cell, title: str) -> Outcome:
        """Wait for the outcome of a cell that was taken."""
        outcome = self._remembered(cell)
        if outcome is not None:
            self._progress.done()
            return outcome
        stored = self._kept.get(cell.key)
        if isinstance(stored, Outcome):
            self.cells_kept += 1
            self._progress.note(f"  {'kept':<11} {title}")
            self._progress.done()
            return self._remember(cell, stored)
        if isinstance(stored, Damage):
            self._progress.note(f"  {'damaged':<11} {title}: {self._folder.found_damaged(stored)}; it is run again")
        while (outcome := self._remembered(cell)) is None:
            if cell.key not in self._under_way:
                # It failed under another time limit.
                self._hand_over({cell.key: Asked(cell, title)})
            self._next_outcome(self._under_way[cell.key])
        return outcome

    def _next_outcome(self, batch: _Batch) -> Outcome:
        """Wait for the next outcome of a batch."""
        request = batch.waiting.popleft()
        del self._under_way[request.cell.key]
        started = time.monotonic()
        with self._progress.step(request.title, log=self.directory(request.cell) / "log.txt"):
            outcome = next(batch.outcomes)
        self.cells_run += 1
        self.cell_seconds += outcome.usage.get("seconds", 0.0)
        failure = "" if outcome.failure is None else f"  ({outcome.failure.boundary}: {outcome.failure.message})"
        rate = tokens_per_second(outcome)
        speed = "" if rate is None else f", {rate:.0f} tokens/s"
        # Beside others it may have begun long before it was awaited.
        waited = time.monotonic() - started
        took = max(waited, outcome.usage.get("seconds", 0.0))
        self._progress.note(f"  {outcome.status:<11} {request.title}, {readable(took)}{speed}{failure}")
        self._progress.done(waited, rate)
        return self._remember(request.cell, outcome)

    def _remembered(self, cell: Cell) -> Outcome | None:
        """Return the outcome of an equal cell; a failure, which its time limit may cause, only for the same limit."""
        return self._ended.get((cell.key, None)) or self._ended.get((cell.key, cell.timeout_seconds))

    def _remember(self, cell: Cell, outcome: Outcome) -> Outcome:
        self.peak_memory_mib = max(self.peak_memory_mib, outcome.usage.get("peak_memory_mib", 0.0))
        self._ended[cell.key, None if outcome.status in SETTLED else cell.timeout_seconds] = outcome
        return outcome

    def _failed(self, failure: Failure) -> Outcome:
        self._progress.done()
        return Outcome("unsupported" if failure.boundary == "unsupported" else "failed", {}, failure, {})

    def _show_event(self, request: Asked, event: Event) -> None:
        """Show what a cell reports while it runs."""
        match event:
            case {"event": "phase", "name": name}:
                self._progress.update(f"{request.title}: {name}")
            case {"event": "progress", "done": done, "total": total}:
                remark = f", {event['said']}" if "said" in event else ""
                self._progress.update(f"{request.title}: {done}/{total}{remark}")


def tokens_per_second(outcome: Outcome) -> float | None:
    """Return how fast the engine generated; None if it generated nothing."""
    tokens, seconds = outcome.result.get("generated_tokens"), outcome.result.get("generate_seconds")
    return tokens / seconds if tokens and seconds else None
