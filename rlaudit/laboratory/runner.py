"""Runs the cells of one run directory and keeps what is already there."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.engines.cells.cell import SETTLED, Cell, adopt, finished
from rlaudit.engines.cells.executor import Asked, Executor
from rlaudit.engines.cells.launch import Event, Failure, Outcome
from rlaudit.engines.cells.seal import Damage
from rlaudit.engines.cells.shard import LEFT, LeftToOthers
from rlaudit.errors import NotFinished
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.progress import Progress, readable


@dataclass(frozen=True)
class _Batch:
    """Cells that the executor has taken at once: those whose outcomes are still to come, in the order of these."""

    waiting: deque[Asked]
    outcomes: Iterator[Outcome]


class Runner:
    """Has the cells of one run directory run by an executor, and keeps what is already there."""

    def __init__(self, folder: RunFolder, executor: Executor, progress: Progress) -> None:
        self._folder, self._executor, self._progress = folder, executor, progress
        self._numbers: dict[str, int] = {}
        self._kept: dict[str, Outcome | Damage | None] = {}
        self._under_way: dict[str, _Batch] = {}
        self._ended: dict[tuple[str, float | None], Outcome] = {}
        self.cells_run = 0
        self.cells_kept = 0
        self.cell_seconds = 0.0
        self.peak_memory_mib = 0.0

    def directory(self, cell: Cell) -> Path:
        """Return where a cell's files are."""
        return self._folder.cells / cell.key

    def outcome(self, cell: Cell, title: str) -> Outcome:
        """Return the outcome of a cell that has to be there before the run can go on: kept from before, or run now."""
        self._take([Asked(cell, title)])
        return self._outcome(cell, title)

    def outcomes(self, asked: Sequence[tuple[Cell | Failure, str]]) -> Iterator[Outcome]:
        """Yield the outcome of each cell, which comes with its title; a Failure in a cell's place is its own outcome.

        All cells that have to run are handed to the executor now, before the first is waited for.
        """
        cells = [(cell, title) for cell, title in asked if isinstance(cell, Cell)]
        self._take(
            [Asked(cell, title, self._numbers.setdefault(cell.key, len(self._numbers))) for cell, title in cells]
        )
        return (self._outcome(cell, title) if isinstance(cell, Cell) else self._failed(cell) for cell, title in asked)

    def needed(self, cell: Cell, title: str, complaint: str) -> Outcome:
        """Return the outcome of a cell that the run needs. Raises NotFinished with the complaint and the reason."""
        return self.settled(self.outcome(cell, title), cell, complaint)

    def settled(self, outcome: Outcome, cell: Cell, complaint: str) -> Outcome:
        """Return the outcome of such a cell. Raises NotFinished if the run cannot go on with it."""
        if outcome.status != "ok":
            raise NotFinished(f"{complaint}: {outcome.why}", f"its log: {self.directory(cell)}/log.txt")
        return outcome

    def _take(self, asked: Sequence[Asked]) -> None:
        """Hand the cells to the executor that are neither there nor under way."""
        new: dict[str, Asked] = {}
        for one in asked:
            cell = one.cell
            if self._known(cell) is None and cell.key not in self._under_way and cell.key not in new:
                self._folder.asked_for(cell.key)
                kept = finished(self._folder.cells, cell)
                if not isinstance(kept, Outcome):
                    kept = adopt(self._folder.cells, cell, self._folder.elsewhere) or kept
                self._kept[cell.key] = kept
                if not isinstance(kept, Outcome):
                    new[cell.key] = one
        self._hand_over(new)

    def _hand_over(self, new: Mapping[str, Asked]) -> None:
        batch = _Batch(deque(new.values()), self._executor.run(list(new.values()), self._heard))
        self._under_way |= dict.fromkeys(new, batch)

    def _outcome(self, cell: Cell, title: str) -> Outcome:
        """Wait for the outcome of a cell that was taken."""
        known = self._known(cell)
        if known is not None:
            self._progress.done()
            return known
        kept = self._kept.get(cell.key)
        if isinstance(kept, Outcome):
            self.cells_kept += 1
            self._progress.note(f"  {'kept':<11} {title}")
            self._progress.done()
            return self._remember(cell, kept)
        if isinstance(kept, Damage):
            self._progress.note(f"  {'damaged':<11} {title}: {self._folder.found_damaged(kept)}; it is run again")
        while (known := self._known(cell)) is None:
            if cell.key not in self._under_way:
                # It failed under another time limit.
                self._hand_over({cell.key: Asked(cell, title)})
            if self._next(self._under_way[cell.key]) is LEFT:
                # The run ends here: this shard's own cells come first.
                while self._under_way:
                    self._next(next(iter(self._under_way.values())))
                raise LeftToOthers
        return known

    def _next(self, batch: _Batch) -> Outcome:
        """Wait for the next outcome of a batch."""
        asked = batch.waiting.popleft()
        del self._under_way[asked.cell.key]
        started = time.monotonic()
        with self._progress.step(asked.title, log=self.directory(asked.cell) / "log.txt"):
            outcome = next(batch.outcomes)
        if outcome is LEFT:
            return outcome
        self.cells_run += 1
        self.cell_seconds += outcome.usage.get("seconds", 0.0)
        said = "" if outcome.failure is None else f"  ({outcome.failure.boundary}: {outcome.failure.message})"
        rate = tokens_per_second(outcome)
        spoken = "" if rate is None else f", {rate:.0f} tokens/s"
        # Beside others it may have begun long before it was waited for.
        waited = time.monotonic() - started
        took = max(waited, outcome.usage.get("seconds", 0.0))
        self._progress.note(f"  {outcome.status:<11} {asked.title}, {readable(took)}{spoken}{said}")
        self._progress.done(waited, rate)
        return self._remember(asked.cell, outcome)

    def _known(self, cell: Cell) -> Outcome | None:
        """Return the outcome of an equal cell; a failure, which its time limit may cause, only for the same limit."""
        return self._ended.get((cell.key, None)) or self._ended.get((cell.key, cell.timeout_seconds))

    def _remember(self, cell: Cell, outcome: Outcome) -> Outcome:
        self.peak_memory_mib = max(self.peak_memory_mib, outcome.usage.get("peak_memory_mib", 0.0))
        self._ended[cell.key, None if outcome.status in SETTLED else cell.timeout_seconds] = outcome
        return outcome

    def _failed(self, failure: Failure) -> Outcome:
        self._progress.done()
        return Outcome("unsupported" if failure.boundary == "unsupported" else "failed", {}, failure, {})

    def _heard(self, asked: Asked, event: Event) -> None:
        """Show what a cell reports while it runs."""
        match event:
            case {"event": "phase", "name": name}:
                self._progress.update(f"{asked.title}: {name}")
            case {"event": "progress", "done": done, "total": total, **more}:
                said = f", {more['said']}" if "said" in more else ""
                self._progress.update(f"{asked.title}: {done}/{total}{said}")


def tokens_per_second(outcome: Outcome) -> float | None:
    """Return how fast the engine generated; None if it generated nothing."""
    tokens, seconds = outcome.result.get("generated_tokens"), outcome.result.get("generate_seconds")
    return tokens / seconds if tokens and seconds else None
