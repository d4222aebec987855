"""A log that another program writes, without the secrets that its lines would hold.

An engine logs the arguments it was given. Its lines go through this process, so that a log never holds what has to be
taken out of it afterwards; when this process is killed the engine ends, too (guardian.py).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from rlaudit.secrets import mask

# A line that does not end, as a progress bar's, is passed on in pieces of this size.
_LONGEST_LINE = 65536
# What still holds the log after everything below the guardian has ended is a daemon of a container.
_SECONDS_TO_FINISH = 5.0


@contextmanager
def masked_log(path: Path) -> Iterator[BinaryIO]:
    """Open a file to start a process with, whose lines are added to `path`."""
    reading, writing = os.pipe()
    copying = Thread(target=_copy, args=(reading, path), daemon=True, name="rlaudit-log")
    copying.start()
    try:
        with os.fdopen(writing, "wb") as log:
            yield log
    finally:
        copying.join(_SECONDS_TO_FINISH)


def _copy(reading: int, path: Path) -> None:
    """Pass on line by line. What cannot be written is still read: a full disk must not stop the engine half way."""
    with os.fdopen(reading, "rb") as lines:
        try:
            with path.open("ab") as log:
                while line := lines.readline(_LONGEST_LINE):
                    log.write(mask(line.decode("utf-8", errors="surrogateescape")).encode("utf-8", "surrogateescape"))
                    log.flush()
        except OSError:
            while lines.read(_LONGEST_LINE):
                pass
