"""Runs the cells of one run directory and keeps what is already there."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlaudit.engines.cells.cell import SETTLED, Cell, adopt, finished
from rlaudit.engines.cells.executor import Executor, Submitted
from rlaudit.engines.cells.launch import Event, Outcome
from rlaudit.engines.cells.seal import Damage
from rlaudit.engines.cells.shard import LeftToOthers
from rlaudit.errors import NotFinished
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.progress import Progress, readable


class Runner:
    """Has the cells of one run directory run by an executor, and keeps what is already there."""

    def __init__(self, folder: RunFolder, executor: Executor, progress: Progress) -> None:
        self._folder = folder
        self._cells = folder.cells
        self._executor = executor
        self._progress = progress
        self._kept: dict[str, Outcome | Damage | None] = {}
        self._submitted: dict[str, _Asked] = {}
        self._numbers: dict[str, int] = {}
        self._settled: dict[tuple[str, float | None], Outcome] = {}
        self.cells_run = 0
        self.cells_kept = 0
        self.cell_seconds = 0.0
        self.peak_memory_mib = 0.0

    def directory(self, cell: Cell) -> Path:
        """Return where a cell's files are."""
        return self._cells / cell.key

    def outcome(self, cell: Cell, title: str) -> Outcome:
        """Return the outcome of a cell that has to be there before the run can go on: kept from before, or run now."""
        self._ask(cell, title, None)
        (outcome,) = self._in_order([(cell, title)])
        return outcome

    def outcomes(self, asked: Sequence[tuple[Cell, str]]) -> Iterator[Outcome]:
        """Return the outcome of each cell, which comes with its title.

        All that have to run are submitted now, before the first is waited for: an executor may run several at once.
        """
        for cell, title in asked:
            self._ask(cell, title, self._numbers.setdefault(cell.key, len(self._numbers)))
        return self._in_order(asked)

    def _ask(self, cell: Cell, title: str, number: int | None) -> None:
        """Submit a cell that is not there and not under way."""
        if self._shared(cell) is not None or cell.key in self._submitted:
            return
        self._folder.asked_for(cell.key)
        kept = finished(self._cells, cell)
        if not isinstance(kept, Outcome):
            kept = adopt(self._cells, cell, self._folder.elsewhere) or kept
        self._kept[cell.key] = kept
        if not isinstance(kept, Outcome):
            self._submitted[cell.key] = self._submit(cell, title, number)

    def _in_order(self, asked: Sequence[tuple[Cell, str]]) -> Iterator[Outcome]:
        try:
            for cell, title in asked:
                yield self._outcome(cell, title)
        finally:
            for cell, _ in asked:
                waiting = self._waiting_for(cell)
                if waiting is not None:
                    waiting.submitted.cancel()

    def _outcome(self, cell: Cell, title: str) -> Outcome:
        shared = self._shared(cell)
        if shared is not None:
            self._progress.done()
            return shared
        kept = self._kept.get(cell.key)
        if isinstance(kept, Damage):
            self._progress.note(f"  {'damaged':<11} {title}: {self._folder.found_damaged(kept)}; it is run again")
        if isinstance(kept, Outcome):
            outcome = kept
            self.cells_kept += 1
            self._progress.note(f"  {'kept':<11} {title}")
            self._progress.done()
        else:
            # A cell that failed with another time limit is submitted once more.
            outcome = self._run(self._waiting_for(cell) or self._submit(cell, title, None))
        self.peak_memory_mib = max(self.peak_memory_mib, outcome.usage.get("peak_memory_mib", 0.0))
        self._settled[cell.key, None if outcome.status in SETTLED else cell.timeout_seconds] = outcome
        return outcome

    def _waiting_for(self, cell: Cell) -> "_Asked | None":
        """Take out a cell that was submitted, to wait for it; None if it was not submitted."""
        return self._submitted.pop(cell.key) if cell.key in self._submitted else None

    def _shared(self, cell: Cell) -> Outcome | None:
        """Return the outcome of an equal cell; a failure, which its time limit may cause, only for the same limit."""
        return self._settled.get((cell.key, None)) or self._settled.get((cell.key, cell.timeout_seconds))

    def needed(self, cell: Cell, title: str, complaint: str) -> Outcome:
        """Return the outcome of a cell that the run needs. Raises NotFinished with the complaint and the reason."""
        return self.settled(self.outcome(cell, title), cell, complaint)

    def settled(self, outcome: Outcome, cell: Cell, complaint: str) -> Outcome:
        """Return the outcome of such a cell. Raises NotFinished if the run cannot go on with it."""
        if outcome.status != "ok":
            raise NotFinished(f"{complaint}: {outcome.why}", f"its log: {self.directory(cell)}/log.txt")
        return outcome

    def _submit(self, cell: Cell, title: str, number: int | None) -> "_Asked":
        def on_event(event: Event) -> None:
            match event:
                case {"event": "phase", "name": name}:
                    self._progress.update(f"{title}: {name}")
                case {"event": "progress", "done": done, "total": total, **more}:
                    said = f", {more['said']}" if "said" in more else ""
                    self._progress.update(f"{title}: {done}/{total}{said}")

        return _Asked(cell, title, self._executor.submit(cell, title, on_event, number))

    def _run(self, asked: "_Asked") -> Outcome:
        cell, title = asked.cell, asked.title
        started = time.monotonic()
        try:
            with self._progress.step(title, log=self.directory(cell) / "log.txt"):
                outcome = asked.submitted.result()
        except LeftToOthers:
            self._run_what_is_left()
            raise
        self.cells_run += 1
        self.cell_seconds += outcome.usage.get("seconds", 0.0)
        said = "" if outcome.failure is None else f"  ({outcome.failure.boundary}: {outcome.failure.message})"
        rate = tokens_per_second(outcome)
        spoken = "" if rate is None else f", {rate:.0f} tokens/s"
        # Beside others it may have begun long before it was waited for.
        waited = time.monotonic() - started
        took = max(waited, outcome.usage.get("seconds", 0.0))
        self._progress.note(f"  {outcome.status:<11} {title}, {readable(took)}{spoken}{said}")
        self._progress.done(waited, rate)
        return outcome

    def _run_what_is_left(self) -> None:
        """Run the cells of this shard that are left, since the run ends here."""
        while self._submitted:
            asked = self._submitted.pop(next(iter(self._submitted)))
            with suppress(LeftToOthers):
                self._run(asked)


@dataclass(frozen=True)
class _Asked:
    cell: Cell
    title: str
    submitted: Submitted


def tokens_per_second(outcome: Outcome) -> float | None:
    """Return how fast the engine generated; None if it generated nothing."""
    tokens, seconds = outcome.result.get("generated_tokens"), outcome.result.get("generate_seconds")
    return tokens / seconds if tokens and seconds else None
