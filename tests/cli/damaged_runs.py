"""Damages to a finished run: is each noticed, named, and made good, and does no verdict change in silence?

A run of stand-in engines is damaged in one file at a time (cut off, a bit turned, exchanged with another file, deleted,
emptied), or in a whole folder of a cell. Then `report`, `compare` and `diagnose` look at it, the command that made the
run is given again, and they look again.
"""

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from laboratories import ONE_FACTOR, Laboratory

from rlaudit.cli.app import run

# Nothing is read from these once their cell is done, or they hold nothing.
DECIDES_NOTHING = frozenset({"log.txt", "events.jsonl", ".lock", "cells.json"})
UNFINISHED = 3


@dataclass(frozen=True)
class Damage:
    """What was done to which files of the run directory, by their names there."""

    kind: str
    files: tuple[str, ...]

    @property
    def decides(self) -> bool:
        """Whether a verdict rests on one of the files."""
        return any(Path(name).name not in DECIDES_NOTHING for name in self.files)


@dataclass
class Trial:
    """One damage and what the commands said of it; `problems` are failures, in sentences."""

    damage: Damage
    codes: dict[str, int]
    problems: list[str] = field(default_factory=list)


def files_of(folder: Path) -> list[Path]:
    """All files of a run directory, always in the same order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def cut(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Cut a file off somewhere."""
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(len(data))] if data else b"")
    return [path]


def flip(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Turn one bit."""
    data = bytearray(path.read_bytes() or b"\0")
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    return [path]


def exchange(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Exchange two files, of the same name where there are two."""
    others = [other for other in files_of(folder) if other != path]
    alike = [other for other in others if other.name == path.name]
    other = random.choice(alike or others)
    own, foreign = path.read_bytes(), other.read_bytes()
    path.write_bytes(foreign)
    other.write_bytes(own)
    return [path, other] if own != foreign else []


def delete(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Delete a file."""
    path.unlink()
    return [path]


def empty(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Leave nothing of a file but its name, as a full disk does."""
    path.write_bytes(b"")
    return [path]


def repeat(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Write everything twice, as two writers of one log do."""
    path.write_bytes(path.read_bytes() * 2)
    return [path]


def exchange_cells(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Exchange the folders of two cells."""
    one, other = random.sample(sorted((folder / "cells").iterdir()), 2)
    between = folder / "between"
    one.rename(between)
    other.rename(one)
    between.rename(other)
    return [one / "seal.json", other / "seal.json"]


def delete_cell(folder: Path, path: Path, random: Random) -> Sequence[Path]:
    """Delete the folder of a cell."""
    one = random.choice(sorted((folder / "cells").iterdir()))
    shutil.rmtree(one)
    return [one / "seal.json"]


KINDS: Sequence[Callable[[Path, Path, Random], Sequence[Path]]] = (
    cut, cut, flip, flip, exchange, exchange, delete, delete, empty, repeat, exchange_cells, delete_cell,
)  # fmt: skip


def damaged(folder: Path, random: Random) -> Damage:
    """Damage one thing in the run directory."""
    kind = random.choice(KINDS)
    files = kind(folder, random.choice(files_of(folder)), random)
    return Damage(kind.__name__, tuple(str(path.relative_to(folder)) for path in files))


@dataclass(frozen=True)
class Said:
    """What one command line said."""

    code: int
    out: str
    err: str


def said(*words: str) -> Said:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(words))
    return Said(code, out.getvalue(), err.getvalue())


class DamagedRuns:
    """A finished run, what is said of it undamaged, and a fresh copy of it for every damage."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.run_dir = laboratory.run_dir
        self._whole = laboratory.folder / "whole"
        self._again = laboratory.arguments(laboratory.recipe(ONE_FACTOR))
        self.looks = {
            "report": ("report", str(self.run_dir), "--output", "json"),
            "compare": ("compare", str(self.run_dir), "--arm", "candidate", "--quiet", "--output", "json"),
            "diagnose": ("diagnose", str(self.run_dir), "--output", "json"),
        }
        first = said(*self._again)
        assert first.code == 1, first.err
        shutil.copytree(self.run_dir, self._whole)
        self.undamaged = {name: said(*words) for name, words in self.looks.items()}
        self.verdict = verdict_of(self.run_dir)

    def trial(self, random: Random) -> Trial:
        """Damage the run, look at it, run it again, and look again."""
        shutil.rmtree(self.run_dir)
        shutil.copytree(self._whole, self.run_dir)
        damage = damaged(self.run_dir, random)
        trial = Trial(damage, {})
        for name, words in self.looks.items():
            self._look(trial, name, said(*words))
        again = said(*self._again)
        trial.codes["ablate"] = again.code
        told = "damaged" in again.err
        if again.code != 1 or verdict_of(self.run_dir) != self.verdict:
            trial.problems.append(
                f"ablate: exit {again.code}, another verdict, {'' if told else 'not '}said: {again.err}"
            )
        recorded = json.loads((self.run_dir / "report.json").read_text())["run"]["damaged"]
        if damage.decides and not (told and recorded):
            trial.problems.append(f"ablate: the damage is not named: {again.err}")
        if not damage.decides and (told or recorded):
            trial.problems.append(f"ablate: a damage that is none is named: {again.err}")
        for name, words in self.looks.items():
            after = said(*words)
            if after.code != self.undamaged[name].code:
                trial.problems.append(f"{name} after the run was made good: exit {after.code}: {after.err}")
        return trial

    def _look(self, trial: Trial, name: str, found: Said) -> None:
        trial.codes[name] = found.code
        undamaged = self.undamaged[name]
        if found.code == undamaged.code and found.out == undamaged.out:
            if trial.damage.decides:
                trial.problems.append(f"{name}: the damage is not noticed")
        elif found.code != UNFINISHED:
            trial.problems.append(f"{name}: exit {found.code} where it was {undamaged.code}: {found.err[-300:]}")
        elif not any(Path(file).name in found.err for file in trial.damage.files):
            trial.problems.append(f"{name}: no damaged file is named: {found.err}")


def verdict_of(run_dir: Path) -> Any:
    """What a run came to: layers, effects and figures, without what it cost."""
    report = json.loads((run_dir / "report.json").read_text())
    figures = [(arm["name"], arm["status"], arm["measurements"], arm.get("semantics")) for arm in report["arms"]]
    return json.loads(json.dumps([report["layers"], report["effects"], figures]))


def trials(laboratory: Laboratory, number: int, seed: int) -> Iterator[Trial]:
    """So many damages, each to a fresh copy of one run."""
    runs, random = DamagedRuns(laboratory), Random(seed)
    for _ in range(number):
        yield runs.trial(random)
