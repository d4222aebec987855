"""Errors of the file system as sentences: the path, the reason, and what to do.

A full disk, a folder that may not be written or a file in the place of a folder are no faults of rlaudit, and may
occur at every read and write. The kinds are those of errno(3).
"""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from rlaudit.errors import NotFinished, RlauditError, UsageError

_FREE = "free some space there, or name another place; what is finished is kept"
_RIGHTS = "the user who runs rlaudit has to be allowed to read and write there; or name another place"
_GONE = "was it moved or deleted? the same command makes again what rlaudit made"
_AGAIN = "the same command goes on once the disk answers again"
# The machine is in the way: the audit was not finished (3).
OF_THE_MACHINE: Mapping[int, str] = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EFBIG: _FREE,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "it can only be read: name another place",
    errno.ENOENT: _GONE,
    errno.ESTALE: _GONE,
    errno.EIO: _AGAIN,
    errno.EBUSY: "something else holds it: try again later, or name another place",
    errno.ETXTBSY: "something else holds it: try again later, or name another place",
    errno.EMFILE: "more files may have to be open at once (ulimit -n)",
    errno.ENFILE: "more files may have to be open at once on this machine",
    errno.ENOLCK: "the file system knows no locks: name a place on another one",
}
# What was named cannot be a place for it: the command line or a configuration has to change (2).
OF_THE_NAME: Mapping[int, str] = {
    errno.ENOTDIR: "a file stands where a folder is needed: name another place, or move it away",
    errno.EEXIST: "a file stands where a folder is needed: name another place, or move it away",
    errno.EISDIR: "a folder stands where a file is needed: name another place, or move it away",
    errno.ENOTEMPTY: "a folder stands where a file is needed: name another place, or move it away",
    errno.ENAMETOOLONG: "no file system takes so long a name: name a shorter one",
    errno.ELOOP: "links there lead in a circle",
}


def error_of_a_file(error: Exception) -> RlauditError | None:
    """Return the error to show the user; None for an error that is neither rlaudit's own nor about files."""
    if isinstance(error, RlauditError):
        return error
    if isinstance(error, EOFError):
        return NotFinished(f"a file that was read ended too early: {error}", "was it cut off? write it again")
    return unusable_place(error) if isinstance(error, OSError) else None


def unusable_place(error: OSError, what: str = "") -> RlauditError | None:
    """Return the error to show the user, with its exit code; None for an error that is not about files.

    what: what the file was to be, as in `the report`.
    """
    kind = error.errno
    if kind is None or not (kind in OF_THE_MACHINE or kind in OF_THE_NAME):
        return None
    if _without_working_folder():
        return NotFinished("the working directory is gone or cannot be read", "change to one that is there")
    why = os.strerror(kind)
    where = _name(error)
    subject = " ".join(word for word in (what, where) if word) or "a file"
    if kind in OF_THE_NAME:
        # Without a file, the arguments of a call of ours are at fault.
        return UsageError(f"{subject}: {why}", OF_THE_NAME[kind]) if where else None
    return NotFinished(f"{subject}: {why}", OF_THE_MACHINE[kind])


def _name(error: OSError) -> str:
    name = error.filename2 or error.filename
    return os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""


def _without_working_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return True
    return False
