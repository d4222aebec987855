"""Finds and ends what a run of rlaudit left when it was killed together with everything that watched over it.

Each command under a guardian has a record in the user's cache while it runs: which processes there are, and who sees to
it that they end (guardian.py). A record without any of its owners is that of a killed run. A process of it is known by
its number and start, in this boot and this container; a process of the same session is of the same run, since a session
is entered by being born into it and its number is not given away while anybody is in it. Nothing else is touched.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from rlaudit.engines.cells.guardian import Process, end_all, machine, processes
from rlaudit.parse_json import parse_json
from rlaudit.say import say

# A record of another boot may be that of another machine with the same home: it is left alone for so long.
_SECONDS_TO_KEEP_A_FOREIGN_RECORD = 30 * 24 * 3600.0

Identity = tuple[int, int]


@dataclass(frozen=True)
class Record:
    """What a guardian wrote down of one command: its owners and its processes, with the session of each."""

    owners: frozenset[Identity]
    sessions: dict[Identity, int]

    def left(self) -> list[Process]:
        """Its processes that are alive, everything in a session that one of them is in, and what these started."""
        alive = _alive()
        known = [one for one in alive if self.sessions.get(one.identity) == one.session]
        sessions = {one.session for one in known}
        found = {one.pid: one for one in alive if one.identity in self.sessions or one.session in sessions}
        frontier = list(found)
        while frontier:
            born = [one for one in alive if one.parent in frontier and one.pid not in found]
            found.update({one.pid: one for one in born})
            frontier = [one.pid for one in born]
        # What was found once is known from then on: it may outlive the process that told whose it is.
        self.sessions.update({one.identity: one.session for one in found.values()})
        return list(found.values())


def new_record() -> Path:
    """Where the guardian of a new command writes its record."""
    folder = _folder()
    return folder / f"{os.getpid()}-{time.monotonic_ns()}.json"


def end_leftovers() -> None:
    """End what killed runs of this user left on this machine, and say so on stderr; at once where there is nothing."""
    try:
        files = sorted(_folder().glob("*.json"))
    except OSError:
        return
    # Each of the commands that run has a record: who is there is asked once for all of them.
    identities = {one.identity for one in _alive()} if files else set()
    for file in files:
        record = _read(file)
        if record is None:
            continue
        if record.owners & identities:
            continue  # it runs, or somebody is about to end it
        left = record.left()
        if left:
            names = ", ".join(f"{one.pid} ({_name(one.pid)})" for one in left)
            say(f"ending what a killed run left: {names}")
            if end_all(record.left):
                say(f"it could not be ended; {file} names it")
                continue
        with suppress(OSError):
            file.unlink()


def _folder() -> Path:
    return user_cache_path("rlaudit") / "running"


def _alive() -> list[Process]:
    """Processes that have not ended: a zombie waits for its parent and holds nothing."""
    return [one for one in processes() if not one.ended]


def _read(file: Path) -> Record | None:
    """The record; None for that of another machine, container or boot, and for one that is broken or just gone."""
    try:
        written: dict[str, Any] = parse_json(file.read_text(encoding="utf-8"))
        here = machine()
        if any(written[key] != value for key, value in here.items()):
            if time.time() - file.stat().st_mtime > _SECONDS_TO_KEEP_A_FOREIGN_RECORD:
                file.unlink()
            return None
        return Record(
            frozenset((pid, start) for pid, start in written["owners"]),
            {(pid, start): session for pid, start, session in written["processes"]},
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "ended"
