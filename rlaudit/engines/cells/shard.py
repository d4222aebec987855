"""A share of a run's cells, for one of several independent jobs (a Slurm array, a Kubernetes Job).

Shard i of n takes every n-th cell, counted over all cells of the run, finished or not, so that each job counts alike.
What a run needs before it can go on (token ids, a trial of the trainer) takes seconds, and every job makes its own.
No job waits for the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlaudit.engines.cells.cell import adopt, describe
from rlaudit.engines.cells.executor import Asked, Executor, OnEvent, unheard
from rlaudit.engines.cells.launch import Outcome
from rlaudit.errors import UsageError


@dataclass(frozen=True)
class Shard:
    """The `number`-th of `of` equal shares, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, words: str) -> "Shard":
        """Read `2/8`. Raises UsageError if it is not of that form."""
        number, slash, of = words.partition("/")
        if not (slash and number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
            raise UsageError(f"--shard {words}: no share of a whole", "Write --shard 1/8 to --shard 8/8.")
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"

    @property
    def folder(self) -> str:
        """The name of the shard's run directory."""
        return f"shard-{self.number}-of-{self.of}"

    def has(self, number: int) -> bool:
        """Return whether the cell of this number is in this share."""
        return number % self.of == self.number - 1


# Stands for the outcome of a cell that another shard has to run first.
LEFT = Outcome("left to others", {}, None, {})


class LeftToOthers(Exception):
    """The run cannot go on before another shard has run a cell."""


@dataclass
class OfAShard:
    """Runs the cells of one shard with another executor.

    A cell that failed in the folder of another shard is settled as well: a run goes on without it.
    """

    shard: Shard
    inner: Executor
    # Holds this shard's cells.
    folder: Path
    # Hold the cells of the other shards.
    others: Sequence[Path] = ()
    # Titles of cells that other shards have to run.
    left: list[str] = field(default_factory=list)
    # Titles of this shard's failed cells.
    failed: list[str] = field(default_factory=list)

    def run(self, requests: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take cells. The outcome of a cell that another shard has to run is LEFT."""
        of_others = {
            place: self._of_another(request) for place, request in enumerate(requests) if not self._is_own(request)
        }
        # Several shards may run on one machine, or share a home directory.
        with_own_cache = [
            replace(request, cell=request.cell.with_own_cache(self.shard.folder))
            for request in requests
            if self._is_own(request)
        ]
        return self._outcomes(requests, of_others, self.inner.run(with_own_cache, on_event))

    def _outcomes(
        self, requests: Sequence[Asked], of_others: Mapping[int, Outcome], of_this_shard: Iterator[Outcome]
    ) -> Iterator[Outcome]:
        for place, request in enumerate(requests):
            outcome = of_others[place] if place in of_others else next(of_this_shard)
            if place not in of_others and outcome.status == "failed":
                self.failed.append(request.title)
            yield outcome

    def _is_own(self, request: Asked) -> bool:
        return request.number is None or self.shard.has(request.number)

    def _of_another(self, request: Asked) -> Outcome:
        outcome = adopt(self.folder, request.cell, self.others, failed=True)
        if outcome is not None:
            return outcome
        self.left.append(request.title)
        if not (self.folder / request.cell.key).exists():
            describe(self.folder / request.cell.key, request.cell)  # so that `rlaudit cell run` can run it
        return LEFT
