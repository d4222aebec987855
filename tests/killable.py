"""Runs that can be killed: what rlaudit, its guardians, the worker and its engine are found by, and what is left.

Nothing here looks at command lines or environments, which an engine overwrites: only at parents, sessions, numbers and
start times. A trainer is ours, and its command line stays.
"""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from rlaudit.engines.cells.guardian import Process, descendants, process, processes

# rlaudit, its two guardians, the worker and the worker's engine: each the parent of the next.
ROLES = ("rlaudit", "upper guardian", "lower guardian", "worker", "engine")
ENGINE = "VLLM::EngineCor"
# Beside the engine of a training.
TRAINER = "trainer"
# Runs the guardian it stands for with less patience, as a plain file.
IMPATIENT = """
import runpy, sys
guardian = runpy.run_path({guardian!r})
guardian["end_all"].__globals__["TERMINATION_SECONDS"] = {seconds}
sys.exit(guardian["main"](int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
"""
PATIENCE_SECONDS = 30.0


def impatient_guardian(folder: Path, guardian: Path, seconds: float) -> Path:
    """A file to start in the guardian's place."""
    file = folder / "impatient_guardian.py"
    file.write_text(IMPATIENT.format(guardian=str(guardian), seconds=seconds))
    return file


def cast(rlaudit: int) -> dict[str, Process]:
    """Who plays which role below a running rlaudit; a role that nobody plays yet is missing."""
    found: dict[str, Process] = {}
    one = process(rlaudit)
    for role in ROLES[:-1]:
        if one is None or one.ended:
            return found
        found[role] = one
        below = [child for child in descendants(one.pid) if child.parent == one.pid]
        one = min(below, key=lambda child: child.start, default=None)
    for child in descendants(found["worker"].pid):
        if name(child.pid) == ENGINE:
            found["engine"] = child
        elif child.parent == found["worker"].pid and b"train.py" in command_line(child.pid):
            found[TRAINER] = child
    return found


def name(pid: int) -> str:
    """What the process calls itself."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def command_line(pid: int) -> bytes:
    """What it was started with; empty where it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def kill(victims: Collection[Process]) -> None:
    """SIGKILL to all of them, as nearly at once as one process can do it."""
    for victim in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)


def alive(known: Collection[Process]) -> list[Process]:
    """Those of the known processes that run still, and whatever else is in a session that one of them led or is in."""
    identities = {one.identity for one in known}
    now = [one for one in processes() if not one.ended]
    sessions = {one.session for one in known if one.session != os.getsid(0)}
    return [one for one in now if one.identity in identities or one.session in sessions]


def seconds_until_gone(known: Collection[Process], patience: float = PATIENCE_SECONDS) -> float:
    """How long it takes until none is alive; infinite where some are after `patience` seconds."""
    began = time.monotonic()
    while alive(known):
        if time.monotonic() - began > patience:
            return float("inf")
        time.sleep(0.02)
    return time.monotonic() - began
