"""Whether a file may be replaced by its fixed text: what would be lost, or changed elsewhere, is left alone."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from rlaudit.inspection.files import TextFile

_ANYBODY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def obstacle(file: TextFile, given: Sequence[str]) -> str | None:
    """Why the file is not to be rewritten, None where it may be. given: the paths of the command line.

    Raises OSError where the file cannot be looked at.
    """
    path = Path(file.path)
    target = Path(os.path.realpath(path))
    if not file.named and not any(_inside(target, Path(os.path.realpath(folder))) for folder in given):
        return f"it is a link to {target}, which is not in what was given"
    status = target.stat()
    # The superuser may write whatever the mode says: it is asked for what its owner meant.
    if not status.st_mode & _ANYBODY_WRITES or not os.access(target, os.W_OK):
        return "it is read-only"
    if status.st_nlink > 1:
        return f"it has {status.st_nlink} names (hard links), which would no longer be one file"
    if target.read_bytes() != file.encoding.encode(file.source.text):
        return "it was changed after it was read; the same command reads it anew"
    return None


def _inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
