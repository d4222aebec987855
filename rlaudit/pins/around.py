"""The pins of a package in a folder and those above it, up to the repository's root."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rlaudit.home import expanded
from rlaudit.pins.known import LARGEST_BYTES, pin_files, pins_in
from rlaudit.pins.package import Package
from rlaudit.pins.pin import Pin, PinFile
from rlaudit.read_regular import read_regular


@dataclass(frozen=True)
class PinnedIn:
    """One file that may pin, and what it says of the package."""

    path: Path
    kind: PinFile
    pins: tuple[Pin, ...]

    @property
    def releases(self) -> tuple[Pin, ...]:
        """The releases that it names, the oldest first, each where it is named first."""
        exact = {pin.version: pin for pin in reversed(self.pins) if pin.version is not None}
        return tuple(exact[version] for version in sorted(exact))


@lru_cache(maxsize=4096)
def pinned_around(folder: Path, package: Package) -> tuple[PinnedIn, ...]:
    """The nearest folder first, and in one folder what was resolved before what was asked for."""
    found = tuple(PinnedIn(path, kind, pins_in(kind, text_of(path), package)) for kind, path in pin_files_in(folder))
    if (folder / ".git").exists() or folder.parent == folder or folder == expanded("~"):
        return found
    return (*found, *pinned_around(folder.parent, package))


def text_of(path: Path) -> str:
    """What a file of pins says; nothing where it cannot be read."""
    try:
        return read_regular(path, LARGEST_BYTES, "no list of packages").decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=4096)
def pin_files_in(folder: Path) -> tuple[tuple[PinFile, Path], ...]:
    """What may pin something in one folder."""
    return tuple(
        (kind, path)
        for kind in pin_files()
        for path in sorted({path for pattern in kind.patterns for path in folder.glob(pattern)})
    )
