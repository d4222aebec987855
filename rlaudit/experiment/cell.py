"""A cell: one job for one interpreter, in a directory named after everything that can change its result.

Resuming is by cell and never finer: half a batch is another batch composition. A cell that is done, or that the engine
refused, is not run again; one that failed is, from scratch.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlaudit.engines.environment_spec import Command
from rlaudit.engines.launch import WORKER, Event, Outcome, judge, launch

KEY_LENGTH = 16
SETTLED = ("ok", "unsupported")


@dataclass(frozen=True)
class Cell:
    """What to run.

    `identity` holds what the job does not say but the result depends on: environment lock, model weights, accelerator
    and driver, and the variables that decide anything. `variables` holds those and the paths that an environment needs
    to run where it happens to be. `refusal` matches the words with which an engine says that it cannot do this.
    `sources` are the shipped files that the script loads beside itself.
    """

    job: Mapping[str, Any]
    command: Command
    variables: Mapping[str, str]
    timeout_seconds: float
    identity: Mapping[str, Any]
    sources: tuple[Path, ...] = ()
    refusal: re.Pattern[str] | None = None

    @property
    def uses_accelerator(self) -> bool:
        """Whether the result depends on the accelerator, which is then to be free."""
        return "accelerator" in self.identity

    @cached_property
    def key(self) -> str:
        """A hash of the job, the sources that run it, and its surroundings, taken once: sources that are changed while
        the cell runs must not make another folder of it."""
        script = Path(self.job["script"])
        everything = {
            "job": {**self.job, "script": script.name},
            "identity": self.identity,
            "sources": [_digest(source) for source in (WORKER, script, *self.sources)],
        }
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]


def finished(folder: Path, cell: Cell) -> Outcome | None:
    """The outcome of a cell that need not be run again, else None."""
    directory = folder / cell.key
    if not (directory / "result.json").exists():
        return None
    outcome = judge(directory, phase="", refusal=cell.refusal)
    return outcome if outcome.status in SETTLED else None


def run_cell(folder: Path, cell: Cell, on_event: Callable[[Event], None]) -> Outcome:
    """Run the cell in `folder`/KEY, which is emptied first, and return how it ended."""
    directory = folder / cell.key
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "job.json").write_text(json.dumps(cell.job))
    (directory / "identity.json").write_text(json.dumps(cell.identity, indent=1))
    return launch(directory, cell.command, cell.variables, cell.timeout_seconds, on_event, cell.refusal)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
