"""The bytes of a regular file, up to a size: reading neither waits nor fills the memory, for any path."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from rlaudit.files.remote_log import is_remote, opened_log


class NotRegular(ValueError):
    """A folder, a pipe, a device, or a file that is larger than it may be."""


def read_regular(path: Path | str, most_bytes: int, what: str) -> bytes:
    """Return all bytes of the file. what: what no file of that size is, as in `no config`.

    Raises NotRegular, or OSError as opening and reading do.
    """
    if not isinstance(path, str) and is_remote(path):
        with opened_log(path) as sent:
            return _whole(sent.read(most_bytes + 1), most_bytes, what)
    with open_regular(path) as file:
        return _whole(file.read(most_bytes + 1), most_bytes, what)


def open_regular(path: Path | str) -> BinaryIO:
    """Open a regular file to be read. Raises NotRegular, or OSError as opening does."""
    if not stat.S_ISREG(Path(path).stat().st_mode):
        # Opening a pipe or a device could wait for ever.
        raise NotRegular("not a regular file")
    # Some files of /proc are regular by their mode, and reading them waits for the kernel.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _whole(data: bytes, most_bytes: int, what: str) -> bytes:
    if len(data) > most_bytes:
        raise NotRegular(f"larger than {most_bytes / 1e6:g} MB, which {what} is")
    return data
