"""Damages to a finished run: is each noticed, named, and made good, and does no verdict change in silence?

A run of stand-in engines is damaged in one file at a time (cut off, a bit turned, exchanged with another file, deleted,
emptied, written twice), or in a whole folder of a cell. Then `report`, `compare` and `diagnose` look at it, the command
that made the run is given again, and they look again.
"""

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from laboratories import ONE_FACTOR, Laboratory

from rlaudit.cli.app import run

# Nothing is read from these once their cell is done, or they hold nothing.
DECIDES_NOTHING = frozenset({"log.txt", "events.jsonl", ".lock", "cells.json"})
UNFINISHED = 3
# A bit, an end, and what a full disk and two writers of one log leave.
CONTENTS: dict[str, Callable[[bytes, Random], bytes]] = {
    "cut": lambda data, random: data[: random.randrange(len(data) or 1)],
    "flip": lambda data, random: (int.from_bytes(data or b"\0") ^ 1 << random.randrange(8 * len(data) or 8)).to_bytes(
        len(data) or 1
    ),
    "empty": lambda _data, _random: b"",
    "repeat": lambda data, _random: data * 2,
}
KINDS = (*CONTENTS, "cut", "flip", "exchange", "exchange", "delete", "delete", "exchange cells", "delete cell")


@dataclass
class Trial:
    """What was done to which files, by their names in the run directory; `problems` are failures, in sentences."""

    kind: str
    files: list[str]
    problems: list[str] = field(default_factory=list)

    @property
    def decides(self) -> bool:
        """Whether a verdict rests on one of the files."""
        return any(Path(name).name not in DECIDES_NOTHING for name in self.files)


def files_of(folder: Path) -> list[Path]:
    """All files of a run directory, always in the same order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def damaged(folder: Path, random: Random) -> Trial:
    """Damage one thing in the run directory."""
    kind, path = random.choice(KINDS), random.choice(files_of(folder))
    touched = [path]
    if kind in CONTENTS:
        path.write_bytes(CONTENTS[kind](path.read_bytes(), random))
    elif kind == "delete":
        path.unlink()
    elif kind == "exchange":
        others = [other for other in files_of(folder) if other != path]
        other = random.choice([other for other in others if other.name == path.name] or others)
        own, foreign = path.read_bytes(), other.read_bytes()
        path.write_bytes(foreign)
        other.write_bytes(own)
        touched = [path, other] if own != foreign else []
    else:
        one, other = random.sample(sorted((folder / "cells").iterdir()), 2)
        touched = [one / "seal.json", other / "seal.json"][: 2 if kind == "exchange cells" else 1]
        one.rename(folder / "between")
        if kind == "exchange cells":
            other.rename(one)
            (folder / "between").rename(other)
        else:
            shutil.rmtree(folder / "between")
    return Trial(kind, [str(path.relative_to(folder)) for path in touched])


def said(*words: str) -> tuple[int, str, str]:
    """The exit code of a command line, and what it printed on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(words))
    return code, out.getvalue(), err.getvalue()


def verdict_of(run_dir: Path) -> Any:
    """What a run came to: layers, effects and figures, without what it cost."""
    report = json.loads((run_dir / "report.json").read_text())
    figures = [(arm["name"], arm["status"], arm["measurements"], arm.get("semantics")) for arm in report["arms"]]
    return json.loads(json.dumps([report["layers"], report["effects"], figures]))


def trials(laboratory: Laboratory, number: int, seed: int) -> Iterator[Trial]:
    """So many damages, each to a fresh copy of one run."""
    random, run_dir, whole = Random(seed), laboratory.run_dir, laboratory.folder / "whole"
    command = laboratory.arguments(laboratory.recipe(ONE_FACTOR))
    looks = {
        "report": ("report", str(run_dir), "--output", "json"),
        "compare": ("compare", str(run_dir), "--arm", "candidate", "--quiet", "--output", "json"),
        "diagnose": ("diagnose", str(run_dir), "--output", "json"),
    }
    assert said(*command)[0] == 1
    shutil.copytree(run_dir, whole)
    undamaged, verdict = {name: said(*words) for name, words in looks.items()}, verdict_of(run_dir)
    for _ in range(number):
        shutil.rmtree(run_dir)
        shutil.copytree(whole, run_dir)
        trial = damaged(run_dir, random)
        for name, words in looks.items():
            code, out, err = said(*words)
            if (code, out) == undamaged[name][:2]:
                trial.problems += [f"{name}: the damage is not noticed"] * trial.decides
            elif code != UNFINISHED or not any(Path(file).name in err for file in trial.files):
                trial.problems.append(f"{name}: exit {code}, or no damaged file is named: {err[-300:]}")
        code, _, err = said(*command)
        if code != 1 or verdict_of(run_dir) != verdict:
            trial.problems.append(f"ablate: exit {code}, or another verdict: {err}")
        recorded = bool(json.loads((run_dir / "report.json").read_text())["run"]["damaged"])
        if not ("damaged" in err) == recorded == trial.decides:
            trial.problems.append(f"ablate: a damage is not named, or one that is none: {err}")
        for name, words in looks.items():
            if said(*words)[0] != undamaged[name][0]:
                trial.problems.append(f"{name} is another one after the run was made good")
        yield trial
