"""Runs one command under the guardian and waits for it, whatever becomes of either.

The guardian (guardian.py) ends everything below it when the lease is dropped: when the command's time is up, on Ctrl-C,
and when rlaudit itself is killed. Nothing is read from a pipe: what the command prints goes to files.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

GUARDIAN = Path(__file__).with_name("guardian.py")
POLL_SECONDS = 0.05


def run_guarded(
    command: Sequence[str],
    environ: Mapping[str, str],
    usage: Path,
    timeout_seconds: float,
    stdout: BinaryIO,
    stderr: BinaryIO | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> bool:
    """Whether the command ended by itself; False when its time was up. All that it started is gone then.

    `usage` gets its exit code and cost, `stderr` goes to `stdout` unless it is given, `meanwhile` is called all the
    time. KeyboardInterrupt is raised again when the command's processes are gone.
    """
    timed_out = False
    with _lease() as (lease, drop):
        guardian = subprocess.Popen(
            [sys.executable, "-I", str(GUARDIAN), str(lease), str(usage), *command],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT if stderr is None else stderr,
            pass_fds=(lease,),
            start_new_session=True,
        )
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
            _wait_undisturbed(guardian)
    return not timed_out


@contextmanager
def _lease() -> Iterator[tuple[int, Callable[[], None]]]:
    """A pipe whose reading end goes to the guardian; dropping our end, or dying, ends the lease."""
    reading, writing = os.pipe()
    held = [writing]

    def drop() -> None:
        if held:
            os.close(held.pop())

    try:
        yield reading, drop
    finally:
        drop()


def _wait_undisturbed(guardian: "subprocess.Popen[bytes]") -> None:
    """A second Ctrl-C must not leave the first one's processes behind."""
    while True:
        try:
            guardian.wait()
        except KeyboardInterrupt:
            continue
        return
