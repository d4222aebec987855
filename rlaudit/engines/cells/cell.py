"""A cell: one job for one interpreter, in a directory named after everything that can change its result.

Resuming is by cell and never finer: half a batch is another batch composition. A cell that is done, or that the engine
refused, is not run again. A failed cell is run again from scratch, and so is one whose files were altered.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.handed_over import hand_over
from rlaudit.engines.cells.launch import PACKAGE, WORKER, Event, Outcome, judge, launch, shipped
from rlaudit.engines.cells.own_cache import own_cache
from rlaudit.engines.cells.seal import SEAL, Damage, read_seal, regular_size, write_seal
from rlaudit.engines.environments.environment_spec import Command
from rlaudit.files.write_atomically import replacing
from rlaudit.secrets import mask, take_out

KEY_LENGTH = 16
FORMAT = 1
JOB, IDENTITY, DESCRIPTION = "job.json", "identity.json", "cell.json"
SETTLED = ("ok", "unsupported")
# rlaudit reads nothing from these after a cell is done: users may pack or delete them.
FOR_PEOPLE = frozenset({"events.jsonl", "log.txt"})


@dataclass(frozen=True)
class Cell:
    """What to run. `gpus` and `timed` change no result, and so are no part of the cell's name."""

    job: Mapping[str, Any]
    command: Command
    # Those that decide the result, and the paths that the environment needs on this machine.
    variables: Mapping[str, str]
    timeout_seconds: float
    # What the result depends on besides the job: environment lock, model weights, accelerator and driver, and the
    # variables that decide it.
    identity: Mapping[str, Any]
    # Shipped files that the script loads besides itself.
    sources: tuple[Path, ...] = ()
    # Matches the message of an engine that cannot run this cell.
    refusal: re.Pattern[str] | None = None
    # Folders outside the cell's own that the job fills.
    writes: tuple[Path, ...] = ()
    # How many it needs; None for all of the machine.
    gpus: int | None = None
    # Its job waits for a clock somewhere, so it needs its device alone.
    timed: bool = False

    @property
    def uses_accelerator(self) -> bool:
        """Whether the result depends on the accelerator, which must then be free."""
        return "accelerator" in self.identity

    def with_own_cache(self, place: str) -> "Cell":
        """Return the cell with a compile cache of this `place` alone."""
        return replace(self, variables={**self.variables, **own_cache(self.variables, place)})

    @cached_property
    def key(self) -> str:
        """A hash of the job, the sources that run it, and its identity.

        It is taken once, so that an edit of the sources while the cell runs does not change its folder.
        """
        script = PACKAGE / self.job["script"]
        everything = {
            # Another token fetches the same weights, and a secret that is not hashed cannot be guessed from the hash.
            "job": mask({**self.job, "script": script.name}),
            "identity": mask(self.identity),
            "sources": [_digest(source) for source in (WORKER, script, *self.sources)],
        }
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]


def finished(folder: Path, cell: Cell) -> Outcome | Damage | None:
    """Return the outcome of a cell that need not be run again.

    None for a cell that did not end or that failed. Damage if a file of an ended cell is missing, cut off or altered.
    """
    outcome = ended(folder, cell)
    return None if isinstance(outcome, Outcome) and outcome.status not in SETTLED else outcome


def ended(folder: Path, cell: Cell) -> Outcome | Damage | None:
    """Return the outcome of a cell that ended, failed or not; None and Damage as in `finished`."""
    directory = folder / cell.key
    seal = read_seal(directory, cell.key)
    if isinstance(seal, Damage):
        has_ended = regular_size(seal.path) is not None or regular_size(directory / "result.json") is not None
        return seal if has_ended else None
    damage = seal.damage(directory)
    return judge(directory, phase="", refusal=cell.refusal) if damage is None else damage


def run_cell(
    folder: Path, cell: Cell, on_event: Callable[[Event], None], cancelled: Callable[[], bool] = lambda: False
) -> Outcome:
    """Empty `folder`/KEY, run the cell in it, seal its files, and return its outcome.

    Raises OSError if the files of the cell cannot be written or read, Cancelled once `cancelled` returns True.
    """
    directory = folder / cell.key
    _clear(directory)
    directory.mkdir(parents=True)
    describe(directory, cell)
    hand_over(directory, JOB, cell.job)
    outcome = launch(directory, cell.command, cell.variables, cell.timeout_seconds, on_event, cell.refusal, cancelled)
    names = {path.name for path in directory.iterdir() if regular_size(path) is not None} - {SEAL}
    if outcome.status == "ok":  # any other outcome is read in the log
        names -= FOR_PEOPLE
    elsewhere = [path for place in cell.writes for path in sorted(place.rglob("*")) if path.is_file()]
    write_seal(directory, cell.key, [*sorted(names), *(os.path.relpath(path, directory) for path in elsewhere)])
    return outcome


def describe(directory: Path, cell: Cell) -> list[Any]:
    """Write what the cell runs (job.json), its identity (identity.json) and how it is started (cell.json).

    Returns the secrets that are left out of the files, for `read_described`. Raises OSError.
    """
    description = {
        "format": FORMAT,
        "command": list(cell.command),
        "variables": dict(cell.variables),
        "timeout_seconds": cell.timeout_seconds,
        "sources": [shipped(source) for source in cell.sources],
        "refusal": None if cell.refusal is None else [cell.refusal.pattern, cell.refusal.flags],
        "writes": [str(folder) for folder in cell.writes],
        "gpus": cell.gpus,
        "timed": cell.timed,
    }
    public, taken = take_out({JOB: dict(cell.job), DESCRIPTION: description})
    directory.mkdir(parents=True, exist_ok=True)
    documents = {**public, IDENTITY: mask(cell.identity)}
    with replacing(*(directory / name for name in documents)) as drafts:
        for draft, document in zip(drafts, documents.values(), strict=True):
            draft.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return taken


def _clear(directory: Path) -> None:
    if directory.is_symlink() or directory.is_file():
        directory.unlink()
    shutil.rmtree(directory, ignore_errors=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
