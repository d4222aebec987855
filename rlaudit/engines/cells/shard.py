"""A share of a run's cells, for one of several jobs that know nothing of each other (a Slurm array, a Kubernetes Job).

Shard i of n takes every n-th cell, counted over all that a run asks for, whether they are there or not: each job counts
alike. What a run needs before it can go on (token ids, the trainer tried) takes seconds, and every job makes its own.
No job waits for the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

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
        """The name of its run directory, beside those of the others."""
        return f"shard-{self.number}-of-{self.of}"

    def has(self, number: int) -> bool:
        """Return whether a cell is one of its own."""
        return number % self.of == self.number - 1


# In the place of the outcome of a cell that another shard has to run first.
LEFT = Outcome("left to others", {}, None, {})


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

    def run(self, asked: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take cells; the outcome of one that is another shard's to run is LEFT."""
        of_others = {place: self._of_another(one) for place, one in enumerate(asked) if not self._is_own(one)}
        # Several shards may run on one machine, or share a home directory.
        own = [replace(one, cell=one.cell.with_own_cache(self.shard.folder)) for one in asked if self._is_own(one)]
        return self._outcomes(asked, of_others, self.inner.run(own, on_event))

    def _outcomes(
        self, asked: Sequence[Asked], of_others: Mapping[int, Outcome], own: Iterator[Outcome]
    ) -> Iterator[Outcome]:
        for place, one in enumerate(asked):
            outcome = of_others[place] if place in of_others else next(own)
            if place not in of_others and outcome.status == "failed":
                self.failed.append(one.title)
            yield outcome

    def _is_own(self, asked: Asked) -> bool:
        return asked.number is None or self.shard.has(asked.number)

    def _of_another(self, asked: Asked) -> Outcome:
        failed = adopt(self.folder, asked.cell, self.others, failed=True)
        if failed is not None:
            return failed
        self.left.append(asked.title)
        if not (self.folder / asked.cell.key).exists():
            describe(self.folder / asked.cell.key, asked.cell)  # so that `rlaudit cell run` can run it
        return LEFT

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.inner.__exit__(*error)
