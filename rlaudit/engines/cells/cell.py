"""A cell: one job for one interpreter, in a directory named after everything that can change its result.

Resuming is by cell and never finer: half a batch is another batch composition. A cell that is done, or that the engine
refused, is not run again; one that failed is, from scratch, and so is one whose files are not as it left them.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.handed_over import hand_over
from rlaudit.engines.cells.launch import PACKAGE, WORKER, Event, Outcome, judge, launch, shipped
from rlaudit.engines.cells.own_cache import own_cache
from rlaudit.engines.cells.seal import SEAL, Damage, read_seal, regular_size, write_seal
from rlaudit.engines.environments.environment_spec import Command
from rlaudit.secrets import mask, take_out
from rlaudit.write_atomically import replacing

KEY_LENGTH = 16
FORMAT = 1
JOB, IDENTITY, DESCRIPTION = "job.json", "identity.json", "cell.json"
SETTLED = ("ok", "unsupported")
# Nothing is read from these once a cell is done: people may look into them, pack them or throw them away.
FOR_PEOPLE = frozenset({"events.jsonl", "log.txt"})


@dataclass(frozen=True)
class Cell:
    """What to run.

    `identity` holds what the job does not say but the result depends on: environment lock, model weights, accelerator
    and driver, and the variables that decide anything. `variables` holds those and the paths that an environment needs
    to run where it happens to be. `refusal` matches the words with which an engine says that it cannot do this.
    `sources` are the shipped files that the script loads beside itself. `writes` are folders elsewhere that the job
    fills. Where it runs changes no result and is no part of its name: `gpus` is how many it needs, None for all there
    are; one that is `timed` waits for a clock somewhere, and has its device alone.
    """

    job: Mapping[str, Any]
    command: Command
    variables: Mapping[str, str]
    timeout_seconds: float
    identity: Mapping[str, Any]
    sources: tuple[Path, ...] = ()
    refusal: re.Pattern[str] | None = None
    writes: tuple[Path, ...] = ()
    gpus: int | None = None
    timed: bool = False

    @property
    def uses_accelerator(self) -> bool:
        """Whether the result depends on the accelerator, which is then to be free."""
        return "accelerator" in self.identity

    def with_own_cache(self, place: str) -> "Cell":
        """Return the cell with a folder of its `place` for what its engine compiles."""
        return replace(self, variables={**self.variables, **own_cache(self.variables, place)})

    @cached_property
    def key(self) -> str:
        """A hash of the job, the sources that run it, and its surroundings, taken once: sources that are changed while
        the cell runs must not make another folder of it."""
        script = PACKAGE / self.job["script"]
        everything = {
            # Another token fetches the same weights, and what was not hashed cannot be guessed from a hash.
            "job": mask({**self.job, "script": script.name}),
            "identity": mask(self.identity),
            "sources": [_digest(source) for source in (WORKER, script, *self.sources)],
        }
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]


def finished(folder: Path, cell: Cell) -> Outcome | Damage | None:
    """Return the outcome of a cell that need not be run again.

    None for a cell that did not end or that failed, Damage where a file of one that ended is missing, cut off or
    altered.
    """
    outcome = ended(folder, cell)
    return None if isinstance(outcome, Outcome) and outcome.status not in SETTLED else outcome


def ended(folder: Path, cell: Cell) -> Outcome | Damage | None:
    """Return the outcome of a cell that ended, however it did; None and Damage as of `finished`."""
    directory = folder / cell.key
    seal = read_seal(directory, cell.key)
    if isinstance(seal, Damage):
        there = regular_size(seal.path) is not None or regular_size(directory / "result.json") is not None
        return seal if there else None
    damage = seal.damage(directory)
    return judge(directory, phase="", refusal=cell.refusal) if damage is None else damage


def adopt(folder: Path, cell: Cell, others: Iterable[Path], *, failed: bool = False) -> Outcome | None:
    """Return the outcome of a cell that was finished in one of the `others`, whose files are then in `folder`, too; of
    one that failed there only if `failed` says so. None if none of them has it. Raises OSError."""
    for other in others:
        outcome = (ended if failed else finished)(other, cell)
        if isinstance(outcome, Outcome):
            part = folder / f".{cell.key}.part"
            _clear(part)
            shutil.copytree(other / cell.key, part)
            _clear(folder / cell.key)
            part.rename(folder / cell.key)
            return outcome
    return None


def run_cell(
    folder: Path, cell: Cell, on_event: Callable[[Event], None], cancelled: Callable[[], bool] = lambda: False
) -> Outcome:
    """Run the cell in `folder`/KEY, which is emptied first, seal what it left, and return how it ended.

    Raises OSError if the files of the cell cannot be written or read, Cancelled once `cancelled` says so.
    """
    directory = folder / cell.key
    _clear(directory)
    directory.mkdir(parents=True)
    describe(directory, cell)
    hand_over(directory, JOB, cell.job)
    outcome = launch(directory, cell.command, cell.variables, cell.timeout_seconds, on_event, cell.refusal, cancelled)
    left = {path.name for path in directory.iterdir() if regular_size(path) is not None} - {SEAL}
    # Whether an engine refused is read in the log.
    kept = left - FOR_PEOPLE if outcome.status == "ok" else left
    written = [path for place in cell.writes for path in sorted(place.rglob("*")) if path.is_file()]
    write_seal(directory, cell.key, [*sorted(kept), *(os.path.relpath(path, directory) for path in written)])
    return outcome


def describe(directory: Path, cell: Cell) -> list[Any]:
    """Write down what the cell runs (job.json), what its result depends on besides (identity.json) and how it is
    started (cell.json); returns the secrets that were left out, as described.py takes them. Raises OSError.
    """
    started = {
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
    public, taken = take_out({JOB: dict(cell.job), DESCRIPTION: started})
    public[DESCRIPTION]["secrets"] = len(taken)
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
