"""A seal: the sizes and SHA-256 digests of the files that belong together, written last of all and in one step.

A folder with an intact seal holds what was written there. A file that was cut off, altered, exchanged or deleted since
is named, and so is a seal that was altered itself or belongs to another folder.
"""

import hashlib
import json
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlaudit.engines.file_digest import file_digest
from rlaudit.files.parse_json import parse_json
from rlaudit.files.write_atomically import write_atomically

SEAL = "seal.json"
FORMAT = 1
# Bytes; a run of ten thousand cells has a tenth of it.
LARGEST = 16 * 2**20


@dataclass(frozen=True)
class Damage:
    """A file that was changed since it was sealed."""

    path: Path
    # What is wrong with it, as the end of a sentence.
    what: str

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


@dataclass(frozen=True)
class Mark:
    """The size and digest of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Seal:
    """The marks of all sealed files of a folder."""

    # Whose files they are: the key of a cell, for one.
    of: str
    # By paths relative to the folder.
    files: dict[str, Mark]

    def damage(self, folder: Path, names: Iterable[str] | None = None) -> Damage | None:
        """Return the first of these files (of all by default) that was changed since."""
        for name in self.files if names is None else names:
            damage = _damage(folder / name, self.files[name])
            if damage is not None:
                return damage
        return None

    def as_bytes(self) -> bytes:
        """Return the contents of its file."""
        files = {name: {"bytes": mark.bytes, "sha256": mark.sha256} for name, mark in self.files.items()}
        return json.dumps(
            {"format": FORMAT, "of": self.of, "files": files, "sha256": self._digest()}, indent=1
        ).encode()

    def _digest(self) -> str:
        fields = [self.of, *((name, mark.bytes, mark.sha256) for name, mark in self.files.items())]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


def mark_of(path: Path) -> Mark:
    """Return the mark of a file. Raises OSError."""
    return Mark(path.stat().st_size, file_digest(path))


def write_seal(folder: Path, of: str, names: Iterable[str]) -> None:
    """Seal these files of the folder. Raises OSError if one cannot be read or the seal cannot be written."""
    seal = Seal(of, {name: mark_of(folder / name) for name in names})
    write_atomically(folder / SEAL, seal.as_bytes())


def read_seal(folder: Path, of: str | None = None) -> Seal | Damage:
    """Return the seal of a folder, or its damage. of: whose seal it must be; None for any."""
    path = folder / SEAL
    try:
        size = regular_size(path)
        if size is None:
            return Damage(path, "is missing")
        if size > LARGEST:
            return Damage(path, f"has {size:,} bytes and is no seal")
        seal = _seal(parse_json(path.read_bytes()))
    except OSError as error:
        return Damage(path, f"cannot be read: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return Damage(path, "was cut off or altered")
    if of is not None and seal.of != of:
        return Damage(path, f"belongs to {seal.of} and not to {of}")
    return seal


def regular_size(path: Path) -> int | None:
    """Return the size of a regular file in bytes; None if there is none. Raises OSError if it cannot be read."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _damage(path: Path, mark: Mark) -> Damage | None:
    try:
        size = regular_size(path)
        if size is None:
            return Damage(path, "is missing")
        if size != mark.bytes:
            return Damage(path, f"has {size:,} bytes, and had {mark.bytes:,}")
        return None if file_digest(path) == mark.sha256 else Damage(path, "was altered")
    except OSError as error:
        return Damage(path, f"cannot be read: {error.strerror}")


def _seal(document: Any) -> Seal:
    if document["format"] != FORMAT:
        raise ValueError("another format")
    files = {name: Mark(int(mark["bytes"]), str(mark["sha256"])) for name, mark in document["files"].items()}
    seal = Seal(str(document["of"]), files)
    if document["sha256"] != seal._digest():
        raise ValueError("not as it was written")
    return seal
