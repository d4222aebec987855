"""Replace files in one step: whoever looks sees the old bytes or the new ones, never half of them.

A draft is written beside the file and renamed over it. It has one name for each file and is locked while somebody
writes it, so that the draft of a process that was killed is overwritten by the next, and two writers take turns.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

# File systems that know no locks, some of them on networks: there, two writers of one file are not told apart.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
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
    with contextlib.ExitStack() as opened:
        drafts = [opened.enter_context(_draft(target)) for target in targets]
        with _named(targets[0]):
            yield tuple(draft.path for draft in drafts)
            for draft, target in zip(drafts, targets, strict=True):
                draft.settle(target)
        for draft, target in zip(drafts, targets, strict=True):
            with _named(target):
                draft.rename(target)


class _Draft:
    """A file that is still written, and the descriptor that holds its lock."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor, self.renamed = path, descriptor, False

    def settle(self, target: Path) -> None:
        """Bytes on the disk, mode and owner as those of the file that is replaced."""
        # A library may have made the file anew.
        with self.path.open("rb") as written:
            os.fsync(written.fileno())
        there = _stat(target)
        if there is not None and stat.S_ISDIR(there.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        own = self.path.stat()
        if there is not None and (there.st_uid, there.st_gid) != (own.st_uid, own.st_gid):
            os.chown(self.path, there.st_uid, there.st_gid)
        # After the owner: to change that takes bits away.
        self.path.chmod(0o666 & ~_mask() if there is None else there.st_mode & 0o7777)

    def rename(self, target: Path) -> None:
        """Take the file's place."""
        self.path.replace(target)
        self.renamed = True


@contextlib.contextmanager
def _draft(target: Path) -> Iterator[_Draft]:
    # A digest in place of the name: a file's name may be as long as names may be.
    path = target.with_name(f"{_DRAFT}{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}")
    with _named(target):
        descriptor = _locked(path)
    draft = _Draft(path, descriptor)
    try:
        yield draft
    finally:
        if not draft.renamed:
            with contextlib.suppress(OSError):
                path.unlink()
        os.close(descriptor)


def _locked(path: Path) -> int:
    """The descriptor of an empty file of ours at `path`, which nobody else writes."""
    while True:
        descriptor = _opened(path)
        try:
            _lock(descriptor)
            held, there = os.fstat(descriptor), _stat(path)
            if there is not None and (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino):
                if held.st_uid == os.geteuid() and held.st_nlink == 1:
                    os.ftruncate(descriptor, 0)
                    return descriptor
                path.unlink()
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(descriptor)
            raise
        except BaseException:
            # Ctrl-C while another writer holds it: the draft is that writer's.
            os.close(descriptor)
            raise
        # It was renamed while we waited for it, or is not ours.
        os.close(descriptor)


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except PermissionError:
        if _stat(path) is None:
            raise
        # What a killed process left of a file that may only be read.
        path.unlink()
        return os.open(path, flags, 0o600)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


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
