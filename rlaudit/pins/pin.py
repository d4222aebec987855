"""One statement of which release is installed, and the kinds of file that make one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from packaging.version import InvalidVersion, Version

from rlaudit.pins.package import Package

Read = Callable[[str, Package], Iterator["Pin"]]


@dataclass(frozen=True)
class Pin:
    """written: as the file has it (`==0.18.1`, `>=0.16,<0.17`). version: the one release that it allows, None for a
    range, a commit or anything else that is not one release. line: 1-based.
    """

    written: str
    version: Version | None
    line: int


@dataclass(frozen=True)
class PinFile:
    """A kind of file. rank: what was resolved stands before what was asked for, and that before what an image holds.

    patterns: of paths, read from their end, as `requirements/*.txt`. asks: whether its ranges are requirements of the
    project and no part of something else.
    """

    name: str
    rank: int
    patterns: tuple[str, ...]
    read: Read
    asks: bool = False

    def matches(self, path: str) -> bool:
        """Whether a path is one of these."""
        return any(PurePath(path).match(pattern) for pattern in self.patterns)


def release(text: str) -> Version | None:
    """`0.8.5+cu121` is 0.8.5 built for one CUDA; trailing dots and dashes come from sentences."""
    try:
        return Version(Version(text.rstrip(".-")).public)
    except InvalidVersion:
        return None


def line_at(text: str, offset: int) -> int:
    """The line of an offset, from 1."""
    return text.count("\n", 0, offset) + 1
