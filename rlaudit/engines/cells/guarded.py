"""Runs one command under the guardian and waits for it, however either of them ends.

The guardian (guardian.py) ends everything below it when the lease is dropped: when the command's time is up, on Ctrl-C,
and when rlaudit itself is killed. If the guardian is killed, its orphans come to this process, which ends them.
Several threads may each run a command.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rlaudit.engines.cells.guardian import Process, adopt_orphans, below_us, descendants, end_all

GUARDIAN = Path(__file__).with_name("guardian.py")
POLL_SECONDS = 0.05

# The process numbers of running guardians, and how many commands are running. An orphan comes to the whole process, and
# not to the thread that started its guardian: what has lost its guardian is seen only if all guardians are known.
_ONE_AT_A_TIME = threading.RLock()
_GUARDIANS: set[int] = set()
_UNDER_WAY = [0]


def run_guarded(
    command: Sequence[str],
    environ: Mapping[str, str],
    usage: Path,
    timeout_seconds: float,
    stdout: BinaryIO,
    stderr: BinaryIO | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> bool:
    """Run the command, and return whether it ended in time. Everything that it started has then ended.

    usage: the file that gets exit code and cost. stderr: None for `stdout`. meanwhile: called every POLL_SECONDS; what
    it raises, and KeyboardInterrupt, is raised again after the command's processes have ended.
    """
    timed_out = False
    with _orphans_of_the_guardian(), _lease() as (lease, drop):
        # A guardian that is not yet in the set would be taken for an orphan.
        with _ONE_AT_A_TIME:
            guardian = subprocess.Popen(
                [sys.executable, "-I", str(GUARDIAN), str(lease), str(usage), *command],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.STDOUT if stderr is None else stderr,
                pass_fds=(lease,),
                start_new_session=True,
            )
            _GUARDIANS.add(guardian.pid)
        os.close(lease)
        deadline = time.monotonic() + timeout_seconds
        try:
            while guardian.poll() is None:
                meanwhile()
                if time.monotonic() > deadline and not timed_out:
                    timed_out = True
                    drop()
                time.sleep(POLL_SECONDS)
        finally:
            drop()
            _undisturbed(guardian.wait)
            _GUARDIANS.discard(guardian.pid)
    return not timed_out


@contextmanager
def _lease() -> Iterator[tuple[int, Callable[[], None]]]:
    """Open a pipe whose reading end goes to the guardian. Dropping our end, or dying, ends the lease."""
    reading, writing = os.pipe()
    held = [writing]

    def drop() -> None:
        if held:
            os.close(held.pop())

    try:
        yield reading, drop
    finally:
        drop()


@contextmanager
def _orphans_of_the_guardian() -> Iterator[None]:
    """On leaving, end the processes that a killed guardian left behind.

    They are in other sessions than ours, which they cannot join, and they did not run before.
    """
    with _ONE_AT_A_TIME:
        before = {child.identity for child in below_us()}
        _UNDER_WAY[0] += 1
        adopt_orphans()
    our_session = os.getsid(0)

    def orphans() -> list[Process]:
        with _ONE_AT_A_TIME:
            below = descendants(os.getpid(), apart_from=_GUARDIANS)
        return [child for child in below if child.session != our_session and child.identity not in before]

    try:
        yield
    finally:
        _undisturbed(lambda: end_all(orphans))
        with _ONE_AT_A_TIME:
            _UNDER_WAY[0] -= 1
            if not _UNDER_WAY[0]:
                adopt_orphans(False)


def _undisturbed(clean_up: Callable[[], object]) -> None:
    """Clean up in spite of a second Ctrl-C, which would leave processes behind."""
    while True:
        try:
            clean_up()
        except KeyboardInterrupt:
            continue
        return
