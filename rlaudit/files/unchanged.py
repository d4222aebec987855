"""Files that are read more than once have to stay what they are: no verdict mixes two of them.

Files in a store are not looked at: an object is replaced as a whole, and a reader there follows its size.
"""

import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rlaudit.errors import NotFinished
from rlaudit.files.remote_log import is_remote

# Device, inode, size and time of the last write in ns; None for what is no file.
_State = tuple[int, int, int, int] | None


class Readings:
    """The files that a command reads, as they were before it read them."""

    def __init__(self) -> None:
        self._before: dict[Path, _State] = {}

    def add(self, paths: Iterable[Path]) -> None:
        """Look at further files, and at all files of folders; a file that was added stays as it was then."""
        for path in paths:
            if is_remote(path):
                continue
            for file in path.rglob("*") if path.is_dir() else (path,):
                self._before.setdefault(file, _state(file))

    def check(self) -> None:
        """Raise NotFinished for the first file that is not what it was."""
        for file, before in self._before.items():
            if _state(file) != before:
                raise NotFinished(
                    f"{file} changed while it was read: it was replaced, written on or removed",
                    "nothing is judged of two files at once: run it again once the file is written, or on a copy",
                )


@contextmanager
def unchanged() -> Iterator[Readings]:
    """Raise NotFinished at the end if a file that was added has changed, also in place of an error that it led to."""
    readings = Readings()
    try:
        yield readings
    except Exception:
        readings.check()
        raise
    readings.check()


def _state(file: Path) -> _State:
    try:
        status = file.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
