"""Replace files in one step: a reader sees the old bytes or the new ones, never half of them.

A draft is written beside the file and renamed over it. Each write has a draft of its own, so that two writers of one
file do not meet, and the last rename stands. A process that is killed leaves its draft behind.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_DRAFT = ".rlaudit-draft-"
# What the system says of a write without naming the file that was written.
_NAMELESS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the file, then rename. Permission bits and the owner are kept, and links stay links.

    Raises OSError, and then the file is as it was and nothing is left beside it.
    """
    with replacing(path) as (draft,):
        draft.write_bytes(data)


@contextlib.contextmanager
def replacing(*paths: Path) -> Iterator[tuple[Path, ...]]:
    """Empty drafts to write into, one for each path; when the block ends they take the places of the files.

    Nothing is replaced before all of them are on the disk. Raises OSError with the path that it is about, and then
    the files are as they were and nothing is left beside them, as for any other exception in the block.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    drafts: list[Path] = []
    try:
        for target in targets:
            with _named(target):
                drafts.append(_empty_draft(target))
        with _named(targets[0]):
            yield tuple(drafts)
            for draft, target in zip(drafts, targets, strict=True):
                _settle(draft, target)
        for draft, target in zip(drafts, targets, strict=True):
            with _named(target):
                draft.replace(target)
    finally:
        for draft in drafts:
            with contextlib.suppress(OSError):
                draft.unlink()


def _empty_draft(target: Path) -> Path:
    """Make an empty file beside the target under a name that no other file has."""
    draft = target.with_name(f"{_DRAFT}{os.urandom(8).hex()}")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return draft


def _settle(draft: Path, target: Path) -> None:
    """Bring the draft's bytes to the disk, and give it mode and owner of the file that it replaces."""
    # A library may have made the file anew.
    with draft.open("rb") as written:
        os.fsync(written.fileno())
    there = _stat(target)
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    own = draft.stat()
    if there is not None and (there.st_uid, there.st_gid) != (own.st_uid, own.st_gid):
        os.chown(draft, there.st_uid, there.st_gid)
    # After the owner: to change that takes bits away.
    draft.chmod(0o666 & ~_mask() if there is None else there.st_mode & 0o7777)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let an error of a write say which file it is about."""
    try:
        yield
    except OSError as error:
        nameless = error.filename is None and error.errno in _NAMELESS
        of_a_draft = isinstance(error.filename, str | bytes) and _DRAFT in os.fsdecode(error.filename)
        if nameless or of_a_draft:
            error.filename, error.filename2 = str(path), None
        raise


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
