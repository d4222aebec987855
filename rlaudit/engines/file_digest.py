"""The SHA-256 of a file, cached until the file changes.

Weights are large, and every command needs their digest. It is cached by the file's device, inode, size and times. One
of the times, that of the last change, cannot be set back: a copy that keeps the other times (`cp -p`, `rsync -t`), or
another file of the same size, is read again.
"""

import contextlib
import hashlib
import os
import re
import time
from pathlib import Path

from rlaudit.files.cache_folder import cache_folder
from rlaudit.files.write_atomically import write_atomically

# Bytes. A smaller file is read within 0.1 s, about what a look-up costs on a slow disk.
WORTH_KEEPING = 64 * 2**20
# Longer than the tick of any file system's clock (2 s on FAT): a file that changed this recently may change again
# within the same tick.
SETTLED_SECONDS = 3.0
_DIGEST = re.compile(r"[0-9a-f]{64}")


def file_digest(path: Path) -> str:
    """Return 64 hexadecimal digits. Raises OSError if the file cannot be read."""
    before = path.stat()
    cache = _cache_of(before) if before.st_size >= WORTH_KEEPING else None
    if cache is not None and (cached := _read(cache)) is not None:
        return cached
    now = time.time()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if cache is not None and now - before.st_ctime > SETTLED_SECONDS and _cache_of(path.stat()) == cache:
        # A cache that cannot be written costs time and nothing else.
        with contextlib.suppress(OSError):
            cache.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(cache, digest.encode())
    return digest


def _cache_of(file: os.stat_result) -> Path:
    identity = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns)
    name = hashlib.sha256(repr(identity).encode()).hexdigest()[:32]
    return cache_folder() / "digests" / name


def _read(cache: Path) -> str | None:
    try:
        text = cache.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None
    return text if _DIGEST.fullmatch(text) else None
