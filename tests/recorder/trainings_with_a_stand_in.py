"""Real processes of a training over the stand-in for vLLM, with the recorder and without it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorder_folder import Written, read, variables, write_recorder

HERE = Path(__file__).parent
FAKES = HERE / "fakes"
TRAINING = HERE / "training.py"
# The engine core in the front end's process, in its own by either start method, and V0.
ENGINES = {
    "V1": {"FAKE_VLLM": "V1"},
    "V1, forked core": {"FAKE_VLLM": "V1", "FAKE_VLLM_CORE": "fork"},
    "V1, spawned core": {"FAKE_VLLM": "V1", "FAKE_VLLM_CORE": "spawn"},
    "V0": {"FAKE_VLLM": "V0"},
}
SAID = "rlaudit recorder: "
# For programs: a disk whose writes of lines can be late or refused, by a function of the data, `before`.
DISK = """
import builtins, io
opened = builtins.open

class Disk(io.FileIO):
    def write(self, data):
        before(data)
        return super().write(data)

def on_disk(file, mode="r", *args, **kwargs):
    return Disk(file, mode.replace("b", "")) if str(file).endswith(".jsonl") else opened(file, mode, *args, **kwargs)

builtins.open = on_disk
"""


@dataclass(frozen=True)
class Ended:
    """A program that has ended: its code, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def printed(self) -> list[Any]:
        """The objects that the training printed, a line each."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def by_the_program(self) -> tuple[int, str, list[str]]:
        """All but what the recorder says on stderr in its own name."""
        return self.code, self.stdout, [line for line in self.stderr.splitlines() if not line.startswith(SAID)]


@dataclass(frozen=True)
class Place:
    """A folder with the recorder, and where it writes."""

    folder: Path
    out: Path

    def written(self) -> Written:
        """Return the recording, of which every line must be whole."""
        return read(self.out)


def place(folder: Path, **settings: Any) -> Place:
    """Return a new folder with the recorder."""
    return Place(write_recorder(folder / "recorder", **settings), folder / "out")


def words(*arguments: object, program: Path | str = TRAINING) -> list[str]:
    """Return the command line of a program: a file, or its text."""
    named = [str(program)] if isinstance(program, Path) else ["-c", program]
    return [sys.executable, *named, *map(str, arguments)]


def surroundings(recorded: Place | None, engine: str = "V1", **more: str) -> dict[str, str]:
    """Return the variables of a training over this stand-in, recorded or not."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "RLAUDIT_", "PYTHON"))}
    mine |= variables(recorded.folder, recorded.out) if recorded else {}
    paths = [mine.get("PYTHONPATH"), str(FAKES), str(HERE)]
    return {**mine, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **ENGINES[engine], **more}


def run(
    *arguments: object, recorded: Place | None = None, engine: str = "V1", program: Path | str = TRAINING, **more: str
) -> Ended:
    """Run a training to its end."""
    done = subprocess.run(
        words(*arguments, program=program),
        env=surroundings(recorded, engine, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
