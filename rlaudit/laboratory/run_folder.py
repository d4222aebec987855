"""A run directory: its plan, its report, and the seal that proves that all files belong together.

    plan.json       the recipe as it was understood, and everything needed to repeat the run
    cells.json      the cells that this run has requested so far, under the plan's digest
    cells/KEY/      a cell, with its seal
    tokens.parquet, report.json
    seal.json       digests of the plan and, once the run has ended, of both and of the seals of its cells

The run directory itself may be a link. A file in it that is a link is replaced, and a folder that is one is refused:
nothing is written through a link that came with a stranger's run.
Another plan replaces the last one and its report. The same plan leaves the last report in place until a new one is
complete.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rlaudit.engines.cells.seal import LARGEST, SEAL, Damage, Mark, Seal, mark_of, read_seal, regular_size
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.files.read_regular import open_regular
from rlaudit.files.write_atomically import replacing, write_atomically
from rlaudit.secrets import mask
from rlaudit.text.plain import plain

PLAN, CELLS, TOKENS, REPORT = "plan.json", "cells.json", "tokens.parquet", "report.json"
CELL_FOLDERS = "cells"
LOCK = ".lock"
REPORTED = (TOKENS, REPORT)


class RunFolder:
    """The writing side of a run directory. `damaged` lists what was not as an earlier run had left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cells = folder / CELL_FOLDERS
        self.damaged: list[str] = []
        self._plan = ""
        self._requested: list[str] = []

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Write the plan, and remove a report that is of another plan or damaged."""
        written = json.dumps(mask(plan), indent=1).encode()
        self._plan, self._requested = _plan_digest(parse_json(written)), []
        reported = self._last_report()
        files = (self.folder / name for name in (PLAN, CELLS, SEAL))
        with replacing(*files, through_links=False) as (plan_draft, cells, seal):
            plan_draft.write_bytes(written)
            cells.write_bytes(self._cells_so_far())
            seal.write_bytes(Seal(self._plan, {PLAN: mark_of(plan_draft), **reported}).as_bytes())
            for name in REPORTED:
                if name not in reported:
                    (self.folder / name).unlink(missing_ok=True)

    def asked_for(self, key: str) -> None:
        """Write down that a cell belongs to this run."""
        if key not in self._requested:
            self._requested.append(key)
            write_atomically(self.folder / CELLS, self._cells_so_far(), through_links=False)

    def found_damaged(self, damage: Damage) -> str:
        """Keep a sentence about a damaged file for the report, and return it."""
        path = damage.path
        inside = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
        self.damaged.append(f"{inside} {damage.what}")
        return self.damaged[-1]

    def finish(self, document: Mapping[str, Any], write_tokens: Callable[[Path], None] | None = None) -> None:
        """Write the report, its tokens if it has any, and the seal that binds them.

        Raises OSError, which leaves the last report in place.
        """
        written = report_as_written(document)
        names = [*([] if write_tokens is None else [TOKENS]), REPORT]
        files = (self.folder / name for name in (*names, SEAL))
        with replacing(*files, through_links=False) as (*drafts, seal):
            if write_tokens is not None:
                write_tokens(drafts[0])
            drafts[-1].write_bytes(written)
            marks = {name: mark_of(draft) for name, draft in zip(names, drafts, strict=True)}
            sealed = [f"{CELL_FOLDERS}/{key}/{SEAL}" for key in self._requested if (self.cells / key / SEAL).exists()]
            marks |= {name: mark_of(self.folder / name) for name in (PLAN, *sealed)}
            seal.write_bytes(Seal(self._plan, marks).as_bytes())
        if write_tokens is None:
            (self.folder / TOKENS).unlink(missing_ok=True)

    def _last_report(self) -> dict[str, Mark]:
        """Return the marks of the report of this very plan, if all of it is undamaged."""
        seal = read_seal(self.folder)
        if isinstance(seal, Damage):
            if (self.folder / CELLS).exists():
                self.found_damaged(seal)
            return {}
        if PLAN not in seal.files:
            self.found_damaged(_seal_of_a_cell(self.folder))
            return {}
        if seal.of != self._plan:
            return {}
        reported = {name: mark for name, mark in seal.files.items() if name in REPORTED}
        if self.cells.exists():
            for cell in (self.folder / name for name in seal.files if _cell_key(name) is not None):
                if not cell.parent.exists():
                    self.found_damaged(Damage(cell.parent, "is missing"))
        damage = seal.damage(self.folder, [PLAN, *reported])
        if damage is None:
            return reported
        self.found_damaged(damage)
        return {}

    def _cells_so_far(self) -> bytes:
        return json.dumps({"plan": self._plan, "cells": self._requested}, indent=1).encode()


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[RunFolder]:
    """Open the run directory for this process alone, making it if needed.

    Raises UsageError for a link in it, NotFinished when another process is using it, OSError if it cannot be made.
    """
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_links(folder)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise NotFinished(f"another rlaudit is running in {folder}", "wait for it, or give --run-dir") from error
    try:
        yield RunFolder(folder)
    finally:
        lock.release()
        if new and {path.name for path in folder.iterdir()} <= {LOCK}:
            # A run that was refused before it began leaves nothing behind.
            with contextlib.suppress(OSError):
                (folder / LOCK).unlink(missing_ok=True)
                folder.rmdir()


def _refuse_links(folder: Path) -> None:
    """Raise UsageError for a link to a folder, to nothing, or in place of the lock: it would be written through."""
    for path in sorted(folder.iterdir()):
        is_file = path.is_file() and path.name != LOCK
        if path.is_symlink() and not is_file:
            raise UsageError(
                f"{path} is a link: rlaudit writes through no link inside a run directory",
                "remove it, or give another --run-dir, which may be a link itself",
            )
        if path.name == LOCK and not path.is_file():
            raise UsageError(f"{path} is no file", "remove it, or give another --run-dir")


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run directory, finished or not."""
    return folder.is_dir() and any((folder / name).exists() for name in (PLAN, CELLS, CELL_FOLDERS))


def has_report(folder: Path) -> bool:
    """Return whether a run has ended with a report, and check that it is whole and of the plan beside it.

    Runs of releases that sealed nothing are not checked, nor are cells if all of them were removed. Raises NotFinished
    naming the first file that is missing, cut off or altered.
    """
    seal = read_seal(folder)
    if isinstance(seal, Damage):
        if regular_size(seal.path) is None and not _was_sealed(folder):
            return regular_size(folder / REPORT) is not None
        raise _damaged(seal)
    if PLAN not in seal.files:
        raise _damaged(_seal_of_a_cell(folder))
    with_cells = (folder / CELL_FOLDERS).exists()
    damage = seal.damage(folder, [name for name in seal.files if with_cells or _cell_key(name) is None])
    if damage is not None:
        raise _damaged(damage)
    for key in filter(None, map(_cell_key, seal.files)):
        if with_cells and (damage := damage_of_cell(folder / CELL_FOLDERS / key)) is not None:
            raise _damaged(damage)
    return REPORT in seal.files


def damage_of_cell(directory: Path) -> Damage | None:
    """Return what is wrong with the folder of a sealed cell, if anything.

    Files that the cell wrote elsewhere are not checked: checkpoints are large, and no report needs them.
    """
    seal = read_seal(directory, directory.name)
    if isinstance(seal, Damage):
        return seal
    return seal.damage(directory, [name for name in seal.files if Path(name).parts[0] != os.pardir])


def cells_of_plan(folder: Path) -> Sequence[str] | None:
    """Return the cells that the run under way has requested; None if its release did not write them down."""
    path = folder / CELLS
    size = regular_size(path)
    if size is None:
        return None
    try:
        document = parse_json(path.read_bytes()) if size <= LARGEST else {}
        with open_regular(folder / PLAN) as file:
            plan = _plan_digest(parse_json(file.read()))
        return [str(key) for key in document["cells"]] if document["plan"] == plan else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _plan_digest(plan: Mapping[str, Any]) -> str:
    """Return what tells plans apart. When and in which words it was asked for does not."""
    provenance = {name: value for name, value in plan.get("provenance", {}).items() if name not in {"date", "command"}}
    return hashlib.sha256(json.dumps({**plan, "provenance": provenance}, sort_keys=True).encode()).hexdigest()


def _was_sealed(folder: Path) -> bool:
    return (folder / CELLS).exists() or any((folder / CELL_FOLDERS).glob(f"*/{SEAL}"))


def _seal_of_a_cell(folder: Path) -> Damage:
    # A run's seal has its plan, a cell's has none.
    return Damage(folder / SEAL, "belongs to a cell and not to the run")


def _cell_key(name: str) -> str | None:
    parts = name.split("/")
    return parts[1] if len(parts) == 3 and parts[0] == CELL_FOLDERS else None


def _damaged(damage: Damage) -> NotFinished:
    return NotFinished(
        f"{damage}: the run is not as it was left",
        "the ablate command that made it runs again what is damaged and keeps the rest",
    )


def report_as_written(document: Mapping[str, Any]) -> bytes:
    """Return a report as the bytes of its file, without secrets."""
    return json.dumps(plain(mask(document)), indent=1, allow_nan=False).encode()
