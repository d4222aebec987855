"""Runs one command under the guardian and waits for it, however either of them ends.

The guardian (guardian.py) ends everything below it when the lease is dropped: when the command's time is up, on Ctrl-C,
and when rlaudit itself is killed. Where the guardian is killed, its orphans come to this process, which ends them.
Several threads may each run one.
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

# The guardians that run, by their process numbers, and how many commands are under way. An orphan comes to the process
# and not to the thread that started its guardian: which one has no guardian left is seen only with all guardians known.
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
    """Return whether the command ended by itself; False if its time was up. All that it started is gone by then.

    `usage` gets its exit code and cost, `stderr` goes to `stdout` unless it is given, `meanwhile` is called all the
    time. What it raises, and KeyboardInterrupt, is raised again when the command's processes are gone.
    """
    timed_out = False
    with _orphans_of_the_guardian(), _lease() as (lease, drop):
        # A guardian that is not in the list yet would be taken for an orphan.
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
    """Open a pipe whose reading end goes to the guardian; dropping our end, or dying, ends the lease."""
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
    """End, afterwards, what is left of the guardian's processes, even if it was killed.

    What it started is in other sessions than ours and can never join it; what was there before is not its own.
    """
    with _ONE_AT_A_TIME:
        before = {one.identity for one in below_us()}
        _UNDER_WAY[0] += 1
        adopt_orphans()
    own_session = os.getsid(0)

    def orphans() -> list[Process]:
        with _ONE_AT_A_TIME:
            below = descendants(os.getpid(), apart_from=_GUARDIANS)
        return [one for one in below if one.session != own_session and one.identity not in before]

    try:
        yield
    finally:
        _undisturbed(lambda: end_all(orphans))
        with _ONE_AT_A_TIME:
            _UNDER_WAY[0] -= 1
            if not _UNDER_WAY[0]:
                adopt_orphans(False)


def _undisturbed(last_things: Callable[[], object]) -> None:
    """Do the last things first: a second Ctrl-C must not leave the first one's processes behind."""
    while True:
        try:
            last_things()
        except KeyboardInterrupt:
            continue
        return
