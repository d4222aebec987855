"""A share of a run's cells, for one of several jobs that know nothing of each other (a Slurm array, a Kubernetes Job).

Shard i of n takes every n-th cell, counted over all that a run asks for, whether they are there or not: each job counts
alike. What a run needs before it can go on (token ids, the trainer tried) takes seconds, and every job makes its own.
No job waits for the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rlaudit.engines.cells.cell import Cell, adopt, describe
from rlaudit.engines.cells.executor import Executor, OnEvent, Submitted
from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.cells.own_cache import with_own_cache
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
        """The name of its run directory, beside those of the others."""
        return f"shard-{self.number}-of-{self.of}"

    def has(self, number: int) -> bool:
        """Return whether a cell is one of its own."""
        return number % self.of == self.number - 1


class LeftToOthers(Exception):
    """The run cannot go on before another shard has run what it waits for."""


@dataclass
class OfAShard:
    """Has the shard's own cells run by another executor. `left` names those of the others, `failed` own ones.

    A cell that failed in another shard's folder of cells, one of `others`, has an answer as well: a run goes on without
    it. `folder` is where the shard's own cells lie.
    """

    shard: Shard
    inner: Executor
    folder: Path
    others: Sequence[Path] = ()
    left: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def submit(
        self, cell: Cell, title: str = "", on_event: OnEvent = lambda event: None, number: int | None = None
    ) -> Submitted:
        """Take a cell; one of the others' answers with LeftToOthers."""
        if number is not None and not self.shard.has(number):
            return Submitted(self._of_another(cell, title))
        # Several shards may run on one machine, or share a home directory.
        submitted = self.inner.submit(with_own_cache(cell, self.shard.folder), title, on_event, number)

        def result() -> Outcome:
            outcome = submitted.result()
            if outcome.status == "failed":
                self.failed.append(title)
            return outcome

        return Submitted(result, submitted.cancel)

    def _of_another(self, cell: Cell, title: str) -> Callable[[], Outcome]:
        failed = adopt(self.folder, cell, self.others, failed=True)
        if failed is None:
            self.left.append(title)
            if not (self.folder / cell.key).exists():
                describe(self.folder / cell.key, cell)  # so that `rlaudit cell run` can run it

        def result() -> Outcome:
            if failed is None:
                raise LeftToOthers
            return failed

        return result

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.inner.__exit__(*error)
