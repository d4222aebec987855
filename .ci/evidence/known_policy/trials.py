"""Blind trials in worlds of a known policy: a log is written, and `rlaudit compare` judges the file.

A log holds every column at one trial and only what its fault needs at the next.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from evidence.known_policy.faults import FAULTS, Fault
from evidence.known_policy.honest import HONEST
from evidence.known_policy.rollouts import World, new_world
from evidence.selftest.run import in_processes
from rlaudit.cli.app import run
from rlaudit.errors import UsageError


@dataclass(frozen=True)
class Row:
    """A fault and the place of its dose, or the name of an honest shape."""

    name: str
    dose: int = 0

    @property
    def fault(self) -> Fault | None:
        """What is planted; None if nothing is wrong."""
        return FAULTS.get(self.name)

    @property
    def in_words(self) -> str:
        """The dose, for people."""
        return "-" if self.fault is None else self.fault.dose.format(self.fault.doses[self.dose])

    def world(self, number: int, rng: np.random.Generator) -> World:
        """Return a world in which this is true."""
        if self.fault is None:
            return HONEST[self.name](rng)
        world = self.fault.plant(new_world(rng), self.fault.doses[self.dose], rng)
        return world if number % 2 == 0 else replace(world, columns=self.fault.needs)


@dataclass(frozen=True)
class Trial:
    """What was said of a row: the exit code, the verdicts of the first two layers, and every cause that was named."""

    row: Row
    exit_code: int
    semantic: str
    path: str
    named: frozenset[str]

    @property
    def right(self) -> bool:
        """Whether a cause was named that is there; whether nothing was, if none is."""
        fault = self.row.fault
        return not self.wrong if fault is None or not fault.names else bool(fault.names & self.named)

    @property
    def wrong(self) -> bool:
        """Whether something was said that is not so: a cause, a layer, or of honest rollouts any mismatch."""
        fault = self.row.fault
        if fault is None or fault.honest:
            return "mismatch" in (self.semantic, self.path)
        return bool(self.named - fault.names - fault.fits) or (self.semantic == "mismatch" and not fault.semantic)

    @property
    def said(self) -> str:
        """For people."""
        return (
            " + ".join(sorted(self.named)) or f"exit {self.exit_code}, {self.semantic or 'refused'}, {self.path or '-'}"
        )


def rows(names: Sequence[str] = ()) -> tuple[Row, ...]:
    """Return the rows of these names, all by default. Raises UsageError for a name that does not exist."""
    known = (*FAULTS, *HONEST)
    for name in names:
        if name not in known:
            raise UsageError(f"no fault {name!r} to plant", f"there are: {', '.join(known)}")
    wanted = [name for name in known if not names or name in names]
    return tuple(Row(name, dose) for name in wanted for dose in range(len(FAULTS[name].doses) if name in FAULTS else 1))


def run_trials(
    wanted: Sequence[Row],
    trials: int,
    seed: int,
    jobs: int,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> list[Trial]:
    """Run `trials` of each row. The same seed gives the same, whatever `jobs` is."""
    return in_processes(partial(_round, tuple(wanted)), [(seed, number) for number in range(trials)], jobs, told)


def _round(wanted: Sequence[Row], seed: tuple[int, int]) -> list[Trial]:
    places = {row: place for place, row in enumerate(rows())}
    return [trial(row, seed[1], np.random.default_rng((*seed, places[row]))) for row in wanted]


def trial(row: Row, number: int, rng: np.random.Generator) -> Trial:
    """Write one log and judge it by its file. A log that cannot be used is refused, and nothing is said of it."""
    world = row.world(number, rng)
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        log, today, report = (Path(folder, name) for name in ("log.parquet", "today.parquet", "report.json"))
        world.write(log, rng)
        options = {"temperature": 1.0, **world.asked}
        if world.today is not None:
            world.today.write(today, rng)
            options["before"] = today
        words = [word for name, value in options.items() for word in _option(name, value)]
        code = run(["compare", str(log), *words, "--output", f"json:{report}", "--quiet"])
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    layers = {one["layer"]: one for one in found.get("layers", ())}
    verdicts = [layers.get(layer, {}).get("verdict", "") for layer in ("semantic", "inference path")]
    named = frozenset(cause for one in layers.values() for cause in one["causes"])
    return Trial(row, code, *verdicts, named)


def _option(name: str, value: object) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    return [option] if value is True else [option, str(value)]
