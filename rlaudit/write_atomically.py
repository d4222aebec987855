"""Replace a file in one step: whoever looks sees the old bytes or the new ones, never half of them."""

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the file, then rename. Permission bits and the owner are kept, and links stay links.

    Raises OSError, and then the file is as it was and nothing is left beside it.
    """
    import tempfile  # it brings random, lzma and more with it

    target = Path(os.path.realpath(path))
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _keep_owner(temporary, target)
        Path(temporary).chmod(_mode(target))
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _keep_owner(temporary: str, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        before, now = target.stat(), Path(temporary).stat()
        if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
            os.chown(temporary, before.st_uid, before.st_gid)


def _mode(target: Path) -> int:
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
