"""Kills at random moments over every process of a run, alone and in pairs: what is left, what is kept, what is said.

    python tests/benchmarks/kills.py [--kills 200] [--seed 1]              stand-in engines, seconds per kill
    python tests/benchmarks/kills.py --engines --kills 20                  real ones: `ablate quick --cpu`, 6 prompts
    python tests/benchmarks/kills.py --training --kills 20                 real ones under training; the trainer as well

A run is started, one or two of its processes are killed with SIGKILL at a random moment, and what is alive a while
later is counted. Then the same command runs to its end. Processes are found by parents, sessions, numbers and start
times (killable.py): never by a command line or an environment, which an engine overwrites.

Printed as JSON lines, and at the end: orphans, cells that were finished and ran again, cells whose worker had answered
and whose engine had not yet gone (nothing vouches for these: they run again), reports that differ from that
of an undisturbed run, and arms whose last question (whether batches change a logprob) an engine died under: these keep
what was measured and say that it was not answered, and are compared without it.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from killable import ROLES, TRAINER, alive, cast, impatient_guardian, kill, seconds_until_gone  # noqa: E402
from laboratories import FAKES, V1, Laboratory, build_engine_cache, laboratory_in  # noqa: E402

from rlaudit.engines.cells.guarded import GUARDIAN  # noqa: E402
from rlaudit.engines.cells.guardian import Process, descendants  # noqa: E402

# Two short trainings, whose figures are the same whenever they are taken.
TRAININGS = """
schema: rlaudit-recipe/1
description: Trainings that are killed.
training: {seeds: 1, prompts_per_step: 8, steps: 20}
engine_args: {skip_tokenizer_init: true, max_model_len: 80, max_num_seqs: 64}
environment_variables: {VLLM_CPU_OMP_THREADS_BIND: nobind, OMP_NUM_THREADS: "1"}
arms:
  - {name: processed, version: 0.18.1, engine_args: {logprobs_mode: processed_logprobs}}
  - {name: raw, version: 0.18.1}
"""
PATIENCE_OF_GUARDIANS = 0.5
SECONDS_TO_GO = 15.0
# Share of a run after which too little of it is left to find a worker or an engine.
LATEST = 0.6
# rlaudit with guardians of little patience: the stand-in's daemon is deaf to SIGTERM in every cell.
PROGRAM = """
import sys
from pathlib import Path
from rlaudit.cli.app import main
from rlaudit.engines.cells import guarded, guardian
if sys.argv[1]:
    from rlaudit.laboratory import scoring
    scoring.SCORE = Path(sys.argv[1])
    guarded.GUARDIAN, guardian.TERMINATION_SECONDS = Path(sys.argv[2]), float(sys.argv[3])
del sys.argv[1:4]
main()
"""
# What a report, or its part about trainings, says of the run and not of the engines.
OF_THE_RUN = ("run", "cost", "provenance")


@dataclass(frozen=True)
class Course:
    """A command that is run again and again in new run directories."""

    words: list[str]
    program: list[str]
    roles: tuple[str, ...] = ROLES

    def victims(self, chance: random.Random) -> tuple[str, ...]:
        """Who is killed: a process alone, or two at once, each as likely as another."""
        return chance.choice([*((role,) for role in self.roles), *itertools.combinations(self.roles, 2)])

    def start(self, folder: Path) -> "subprocess.Popen[bytes]":
        """rlaudit as a process in a session of its own."""
        with (folder.parent / "said").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *self.program, *self.words, "--run-dir", str(folder)],
                env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )


@contextmanager
def stand_in() -> Iterator[tuple[Course, Path]]:
    """Engines of tests/fakes with a process of their own, as vLLM has one."""
    with tempfile.TemporaryDirectory(prefix="rlaudit-kills-") as scratch:
        folder, cache = Path(scratch) / "laboratory", Path(scratch) / "cache"
        folder.mkdir()
        build_engine_cache(cache)
        with laboratory_in(folder, cache) as laboratory:
            recipe = _recipe(laboratory)
            guardian = impatient_guardian(folder, GUARDIAN, PATIENCE_OF_GUARDIANS)
            score = str(FAKES / "scripts" / "score.py")
            words = ["ablate", str(recipe), "--cpu"]
            yield Course(words, [score, str(guardian), str(PATIENCE_OF_GUARDIANS)]), folder


def _recipe(laboratory: Laboratory) -> Path:
    block = {"name": "kills", "candidate": {"version": V1}, "repeats": 1}
    return laboratory.recipe(block, environment_variables={"FAKE_VLLM_ENGINE_CORE": "1"})


@contextmanager
def real() -> Iterator[tuple[Course, Path]]:
    """The environments of the user's cache."""
    with tempfile.TemporaryDirectory(prefix="rlaudit-kills-") as scratch:
        prompts = Path(scratch) / "prompts.txt"
        prompts.write_text("".join(f"What is {number} + {number}?\n" for number in range(6)))
        words = ["ablate", "quick", "--cpu", "--prompts", str(prompts), "--samples", "1"]
        yield Course(words, ["", "", ""]), Path(scratch)


@contextmanager
def training() -> Iterator[tuple[Course, Path]]:
    """The same, with a trainer beside the engine."""
    with tempfile.TemporaryDirectory(prefix="rlaudit-kills-") as scratch:
        recipe = Path(scratch) / "trainings.yaml"
        recipe.write_text(TRAININGS)
        yield Course(["ablate", str(recipe), "--cpu"], ["", "", ""], (*ROLES, TRAINER)), Path(scratch)


def main() -> int:
    """Kill, count, print; 1 where anything was left, lost or said otherwise."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--kills", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--engines", dest="course", action="store_const", const=real, default=stand_in)
    asked.add_argument("--training", dest="course", action="store_const", const=training)
    options = asked.parse_args()
    chance = random.Random(options.seed)
    found: Counter[str] = Counter()
    with options.course() as (course, folder):
        undisturbed = folder / "undisturbed"
        began = time.monotonic()
        course.start(undisturbed).wait()
        seconds = time.monotonic() - began
        expected = conclusions(undisturbed)
        for number in range(options.kills):
            row = one_kill(course, folder / f"run-{number}", chance, seconds, expected)
            print(json.dumps(row), flush=True)
            found.update(
                {
                    key: int(row[key])
                    for key in ("orphans", "lost_cells", "unsealed_again", "other_report", "probes_lost", "killed")
                }
            )
    print(json.dumps({"kills": options.kills, **found}))
    return int(any(found[key] for key in ("orphans", "lost_cells", "other_report")))


def one_kill(
    course: Course, run_dir: Path, chance: random.Random, seconds: float, expected: dict[str, Any]
) -> dict[str, Any]:
    """One run that is killed and one that ends it; `seconds` is what an undisturbed one takes."""
    wanted = course.victims(chance)
    process = course.start(run_dir)
    _wait(process, chance.uniform(0.0, LATEST * seconds))
    roles, everybody = _when_they_are_there(process, wanted, seconds)
    victims = [roles[role] for role in wanted if role in roles]
    kill(victims)
    finished, sealed = _finished(run_dir), _sealed(run_dir)
    process.wait()
    gone = seconds_until_gone(everybody, SECONDS_TO_GO)
    left = alive(everybody)
    kill(left)
    course.start(run_dir).wait()
    report = conclusions(run_dir)
    again = [cell for cell, written in finished.items() if _finished(run_dir).get(cell) != written]
    unanswered = {arm["name"] for arm in report.get("arms", ()) if "error" in (arm.get("batch_probe") or {})}
    row = {
        "victims": wanted,
        "killed": len(victims) == len(wanted),
        "seconds_until_gone": None if left else round(gone, 2),
        "orphans": len(left),
        "finished": len(sealed),
        "lost_cells": sum(cell in sealed for cell in again),
        "unsealed_again": sum(cell not in sealed for cell in again),
        "other_report": _without_probes(report, unanswered) != _without_probes(expected, unanswered),
        "probes_lost": len(unanswered),
    }
    shutil.rmtree(run_dir, ignore_errors=True)
    return row


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _when_they_are_there(
    process: "subprocess.Popen[bytes]", wanted: tuple[str, ...], seconds: float
) -> tuple[dict[str, Process], list[Process]]:
    """Who plays which role as soon as those that are wanted do, or when the run is over."""
    deadline = time.monotonic() + 2 * seconds
    while True:
        roles = cast(process.pid)
        if set(wanted) <= set(roles) or process.poll() is not None or time.monotonic() > deadline:
            return roles, [*roles.values(), *descendants(process.pid)]
        time.sleep(0.02)


def _finished(run_dir: Path) -> dict[str, int]:
    """When each cell that is done was written, in ns."""
    return {path.parent.name: path.stat().st_mtime_ns for path in run_dir.glob("cells/*/result.json")
            if json.loads(path.read_text())["status"] == "ok"}  # fmt: skip


def _sealed(run_dir: Path) -> set[str]:
    """Cells that are finished: they have a result, their processes have gone, and rlaudit has sealed what they left."""
    return {path.parent.name for path in run_dir.glob("cells/*/seal.json")}


def conclusions(run_dir: Path) -> dict[str, Any]:
    """What a report says, without what it says of the run itself."""
    try:
        report = json.loads((run_dir / "report.json").read_text())
    except (OSError, ValueError):
        return {}
    report |= report.pop("canary", {})
    for arm in report["arms"]:
        for key in ("seconds", "tokens_per_second", "peak_memory_mib", "usage", "load_seconds", "generate_seconds"):
            arm.pop(key, None)
    return {key: value for key, value in report.items() if key not in OF_THE_RUN}


def _without_probes(report: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """The report without what the probes of these arms found."""
    left = json.loads(json.dumps(report))
    for arm in left.get("arms", ()):
        if arm["name"] in names:
            arm.pop("batch_probe", None)
            arm.get("observed", {}).pop("batch-invariance", None)
    return dict(left)


if __name__ == "__main__":
    sys.exit(main())
