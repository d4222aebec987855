"""What a logging sink holds, before any of it is checked: rows with a place, and what could not be read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One logging call. place: "line 12" of its file. step: what the sink itself says, unchecked, None if nothing.

    run: which of several runs in one file this belongs to, None if a file holds one.
    """

    place: str
    step: Any
    values: Mapping[str, Any]
    run: str | None = None


@dataclass(frozen=True)
class Problem:
    """Something that was not used: its place and a clause that says why, as in "line 12: not JSON"."""

    path: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}, {self.place}: {self.message}" if self.place else f"{self.path}: {self.message}"


@dataclass
class Problems:
    """Collects problems of one file; those of one kind are said once, with a count."""

    path: Path
    found: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, place: str, message: str, once: bool = False) -> None:
        """Note one occurrence. once: further ones are the same again and not counted."""
        first, count = self.found.get(message, (place, 0))
        self.found[message] = (first, 1 if once else count + 1)

    def listed(self) -> tuple[Problem, ...]:
        """Return one problem for each kind, at its first place."""
        return tuple(
            Problem(str(self.path), place, message if count == 1 else f"{message} ({count} times, this is the first)")
            for message, (place, count) in self.found.items()
        )


@dataclass(frozen=True)
class RunReader:
    """How one sink is read.

    name: what `--format` takes. title: how a person calls it. files: glob patterns of what to look for in a folder,
    most specific first; all files of one pattern in one folder belong together where `joins` is true.
    recognises: (path, first bytes) -> whether a file is of this sink, by its content. read: yields rows, and adds
    to the problems what it could not use. own_step: what the sink's own step is called. rank: lower is tried first.
    """

    name: str
    title: str
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path, Problems], Iterable[Row]]
    own_step: str
    files: tuple[str, ...] = ()
    joins: bool = False
    rank: int = 50


@dataclass(frozen=True)
class RunLog:
    """One run as read: its rows in the order in which they were written."""

    name: str
    reader: RunReader
    paths: tuple[Path, ...]
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
