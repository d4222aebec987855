"""Replace files in one step: a reader sees the old bytes or the new ones, never half of them.

A draft is written beside the file and renamed over it. Each write has another draft, so that two writers of one file do
not meet, and the last rename stands. A process that is killed leaves its draft behind.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_DRAFT = ".rlaudit-draft-"
# Errors of a write in which the system does not name the file.
_NAMELESS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def write_atomically(path: Path, data: bytes, *, through_links: bool = True) -> None:
    """Write beside the file, then rename. Permission bits and the owner are kept, and links stay links.

    through_links: False replaces a link instead of its target. Raises OSError, and then the file is as it was and
    nothing is left beside it.
    """
    with replacing(path, through_links=through_links) as (draft,):
        draft.write_bytes(data)


@contextlib.contextmanager
def replacing(*paths: Path, through_links: bool = True) -> Iterator[tuple[Path, ...]]:
    """Yield empty drafts to write into, one for each path; when the block ends they take the places of the files.

    through_links: False replaces a link instead of its target. Nothing is replaced before all of them are on the disk.
    Raises OSError with the path of the file. After this or any other exception in the block, the files are as they were
    and nothing is left beside them.
    """
    targets = [Path(os.path.realpath(path)) for path in paths] if through_links else list(paths)
    drafts: list[Path] = []
    try:
        for target in targets:
            with _naming(target):
                drafts.append(_empty_draft(target))
        with _naming(targets[0]):
            yield tuple(drafts)
            for draft, target in zip(drafts, targets, strict=True):
                _settle(draft, target)
        for draft, target in zip(drafts, targets, strict=True):
            with _naming(target):
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
    old = _stat(target)
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if old is not None and not stat.S_ISREG(old.st_mode):
        # The bits of a link, a pipe or a device are no file's.
        old = None
    new = draft.stat()
    if old is not None and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.chown(draft, old.st_uid, old.st_gid)
    # After the owner: changing the owner clears bits.
    draft.chmod(0o666 & ~_mask() if old is None else old.st_mode & 0o7777)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the target in an error of a write that names no file, or only the draft."""
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
    umask = os.umask(0)
    os.umask(umask)
    return umask
