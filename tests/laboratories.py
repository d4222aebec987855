"""A laboratory: engine environments that hold the stand-ins of tests/fakes, where rlaudit looks for built ones.

Everything else is the product's own: it finds the environments by their state files, starts real processes in real
interpreters, and runs the shipped worker, guardian and generation script. Only the scoring script is replaced, since a
trainer needs torch; the stand-in scores the same model that the engine samples from.
"""

import importlib.util
import io
import json
import os
import select
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pasted_settings import faults_of_report
from printed_commands import check, printed_in

from rlaudit.cli.app import run
from rlaudit.engines.environments.environment_spec import EnvironmentSpec, trainer_spec
from rlaudit.laboratory import scoring

FAKES = Path(__file__).with_name("fakes")
# Not by its name: the folder on the path would put the stand-in for torch in the way of other tests.
_SPEC = importlib.util.spec_from_file_location("known_model_alone", FAKES / "known_model.py")
assert _SPEC is not None and _SPEC.loader is not None
known_model = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(known_model)
V0, V1, V1_WITH_FLOAT32_HEAD = "0.8.5", "0.18.1", "0.32.0"
# The smallest block in which a factor removes a mismatch.
ONE_FACTOR = {
    "name": "migration",
    "reference": {"version": V0},
    "candidate": {"version": V1},
    "factors": {"logprobs-mode": "processed"},
    "repeats": 0,
}
# Ends a wait for what never comes, and says which, before pytest-timeout ends the test.
PATIENCE_SECONDS = 240.0
MARK = "RLAUDIT_TEST_RUN"
OF_THE_COST = {"date", "command", "seconds", "cell_seconds", "set_up_seconds", "peak_memory_mib", "tokens_per_second"}
# rlaudit as a process of its own, with the scoring script of this one.
WITH_STAND_IN = """
import sys
from pathlib import Path
from rlaudit.cli.app import main
from rlaudit.laboratory import scoring
scoring.SCORE = Path(sys.argv.pop(1))
main()
"""


def build_engine_cache(cache: Path) -> None:
    """Stand-ins of three vLLM releases and of the trainer, as `rlaudit engines build` leaves them."""
    specs = [EnvironmentSpec("vllm", version, "cpu") for version in (V0, V1, V1_WITH_FLOAT32_HEAD)]
    for spec in (*specs, trainer_spec("cpu")):
        home = cache / "rlaudit" / "engines" / spec.name
        python = interpreter_with_fakes(home / "build", spec)
        state = {
            "format": 1,
            "spec": {"package": spec.package, "version": spec.version, "build": spec.build},
            "directory": "build",
            "python": str(python),
            "variables": {},
            "lock": [f"{spec.distribution}=={spec.version}"],
            "notes": [],
            "versions": {"python": sys.version.split()[0], spec.distribution: spec.version},
        }
        (home / "environment.json").write_text(json.dumps(state))


def interpreter_with_fakes(folder: Path, spec: EnvironmentSpec) -> Path:
    """An interpreter whose metadata say that it holds what `spec` asks for, and which imports the stand-ins."""
    venv.create(folder, symlinks=True, with_pip=False)
    packages = next((folder / "lib").glob("python3*")) / "site-packages"
    (packages / "fakes.pth").write_text(f"{FAKES}\n{Path(np.__file__).parents[1]}\n")
    name = "transformers" if spec.package == "trainer" else "vllm"
    for package, version in ((name, spec.version), ("torch", "2.10.0+cpu")):
        metadata = packages / f"{package}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    return folder / "bin" / "python"


@dataclass(frozen=True)
class Run:
    """What one command line left: its exit code, what it printed, its run directory and the report there."""

    exit_code: int
    stdout: str
    stderr: str
    folder: Path
    report: dict[str, Any] = field(default_factory=dict, repr=False)

    def arm(self, name: str) -> dict[str, Any]:
        """One arm of the report."""
        return next(arm for arm in self.report["arms"] if arm["name"] == name)

    def layer(self, name: str) -> dict[str, Any]:
        """One layer of the report."""
        return next(layer for layer in self.report["layers"] if layer["layer"] == name)

    def effects(self, metric: str = "mean_ratio_minus_one") -> dict[str, str]:
        """Verdict by factor=level on one metric."""
        return {
            f"{effect['factor']}={effect['level']}": effect["verdict"]
            for effect in self.report["effects"]
            if effect["metric"] == metric
        }


@dataclass
class Laboratory:
    """A folder with a model, prompts, and the engines of `engine_cache`."""

    folder: Path
    cache: Path

    @property
    def model(self) -> Path:
        """A checkpoint as far as rlaudit looks at one."""
        return self.folder / "model"

    @property
    def run_dir(self) -> Path:
        """Where runs are kept."""
        return self.folder / "run"

    def recipe(self, *blocks: Mapping[str, Any], name: str = "recipe", **keys: Any) -> Path:
        """A recipe file: T = 0.7, float32 on both sides, 16 prompts twice, unless `keys` say otherwise."""
        document = {
            "schema": "rlaudit-recipe/1",
            "model": str(self.model),
            "prompts": str(self.folder / "prompts.txt"),
            "sampling": {"temperature": 0.7},
            "trainer": {"dtype": "float32"},
            "max_tokens": 12,
            "blocks": list(blocks),
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document | keys))
        return path

    def arguments(self, recipe: Path, *more: str) -> list[str]:
        """An ablate command line on the CPU engines."""
        return ["ablate", str(recipe), "--cpu", "--run-dir", str(self.run_dir), *more]

    def ablate(self, recipe: Path, *more: str) -> Run:
        """Run the command line in this process."""
        return self.command(*self.arguments(recipe, *more))

    def command(self, *words: str) -> Run:
        """Any rlaudit command line, in this process."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            exit_code = run(list(words))
        written = self.run_dir / "report.json"
        report = json.loads(written.read_text()) if written.exists() else {}
        assert faults_of_report(report) == []
        for printed in printed_in(report):
            check(printed)
        return Run(exit_code, out.getvalue(), err.getvalue(), self.run_dir, report)

    @contextmanager
    def start(self, recipe: Path, *more: str) -> "Iterator[subprocess.Popen[str]]":
        """The same command line as a process of its own; it is killed where the test fails before it ended."""
        process = subprocess.Popen(
            [sys.executable, "-c", WITH_STAND_IN, str(scoring.SCORE), *self.arguments(recipe, *more)],
            env={**os.environ, "PYTHONPATH": str(FAKES.parent.parent)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background makes their children deaf to Ctrl-C.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def python(self, name: str) -> Path:
        """The interpreter of an environment, by the name that `engines list` prints."""
        return self.cache / "rlaudit" / "engines" / name / "build" / "bin" / "python"


def without_cost(report: Any, *more: str) -> Any:
    """Return what a report says, without when and at what cost it was found out, nor `more`."""
    if isinstance(report, dict):
        return {name: without_cost(one, *more) for name, one in report.items() if name not in (*OF_THE_COST, *more)}
    return [without_cost(one, *more) for one in report] if isinstance(report, list) else report


@contextmanager
def laboratory_in(folder: Path, cache: Path) -> Iterator[Laboratory]:
    """A laboratory in a new folder; whoever leaves an engine process behind has failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setenv(MARK, str(folder))
        patch.setattr(scoring, "SCORE", FAKES / "scripts" / "score.py")
        (folder / "model").mkdir()
        (folder / "model" / "config.json").write_text("{}")
        (folder / "model" / "weights.safetensors").write_bytes(b"known")
        preamble = " ".join(f"word{place}" for place in range(20))
        (folder / "prompts.txt").write_text("".join(f"{preamble} question {number}\n" for number in range(16)))
        yield Laboratory(folder, cache)
    left_behind = processes_of(folder)
    for pid in left_behind:
        os.kill(pid, signal.SIGKILL)
    assert left_behind == []


def processes_of(folder: Path) -> list[int]:
    """Processes that inherited this test's mark, whatever became of their parents."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def wait_for_processes(folder: Path, count: int) -> list[int]:
    """Return them once there are so many: one that has just been started shows its environment a moment later."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found := processes_of(folder)) < count:
        assert time.monotonic() < deadline, f"{len(found)} processes instead of {count}"
        time.sleep(0.01)
    return found


def wait_for_the_end(pids: list[int]) -> None:
    """Return when all have ended; fail after PATIENCE_SECONDS."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, f"process {pid} is still there: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class Signpost:
    """A named pipe on which a stand-in says that it has come to a certain point."""

    path: Path
    descriptor: int

    def wait(self) -> None:
        """Return when somebody has come there; fail after PATIENCE_SECONDS."""
        readable, _, _ = select.select([self.descriptor], [], [], PATIENCE_SECONDS)
        assert readable, "nobody came"
        os.read(self.descriptor, 100)
