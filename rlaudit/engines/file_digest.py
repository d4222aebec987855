"""The SHA-256 of a file, computed once for as long as the file does not change.

Weights are as large as disks allow, and every command of a day asks for them again. A digest is kept under the file's
device, inode, size and times. One of them, the time of the last change, cannot be set back: a copy that keeps the
other times (`cp -p`, `rsync -t`), or another file of the same size, is read again.
"""

import contextlib
import hashlib
import os
import re
import time
from pathlib import Path

from platformdirs import user_cache_path

from rlaudit.write_atomically import write_atomically

# Bytes. Smaller files are read within 0.1 s, which is what looking a digest up may cost on a slow disk.
WORTH_KEEPING = 64 * 2**20
# Longer than the tick of any file system's clock (2 s on FAT): what was changed this recently may be changed again
# without another time.
SETTLED_SECONDS = 3.0
_DIGEST = re.compile(r"[0-9a-f]{64}")


def file_digest(path: Path) -> str:
    """Return 64 hexadecimal digits. Raises OSError if the file cannot be read."""
    before = path.stat()
    kept = _place(before) if before.st_size >= WORTH_KEEPING else None
    if kept is not None and (known := _read(kept)) is not None:
        return known
    now = time.time()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if kept is not None and now - before.st_ctime > SETTLED_SECONDS and _place(path.stat()) == kept:
        # A cache that cannot be written costs time and nothing else.
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, digest.encode())
    return digest


def _place(file: os.stat_result) -> Path:
    known_by = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns)
    name = hashlib.sha256(repr(known_by).encode()).hexdigest()[:32]
    return user_cache_path("rlaudit") / "digests" / name


def _read(kept: Path) -> str | None:
    try:
        text = kept.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None
    return text if _DIGEST.fullmatch(text) else None
