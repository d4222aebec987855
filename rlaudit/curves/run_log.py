"""The content of a logging sink, before any of it is checked: rows with a place, and what could not be read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One logging call."""

    # In its file, as "line 12".
    place: str
    # By the sink, unchecked; None if it has none.
    step: Any
    values: Mapping[str, Any]
    # Which of several runs in a file this belongs to; None if the file holds one.
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
    """Collects the problems of a file; those of one kind are listed once, with a count."""

    path: Path
    occurrences: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, place: str, message: str, once: bool = False) -> None:
        """Note an occurrence. once: whether further ones are not counted."""
        first, count = self.occurrences.get(message, (place, 0))
        self.occurrences[message] = (first, 1 if once else count + 1)

    def listed(self) -> tuple[Problem, ...]:
        """Return one problem for each kind, at its first place."""
        return tuple(
            Problem(str(self.path), place, message if count == 1 else f"{message} ({count} times, this is the first)")
            for message, (place, count) in self.occurrences.items()
        )


@dataclass(frozen=True)
class RunReader:
    """How a sink is read."""

    # What `--format` takes.
    name: str
    title: str
    # (path, first bytes) -> whether a file is of this sink, by its content.
    recognises: Callable[[Path, bytes], bool]
    # Yields rows, and adds to the problems what it could not use.
    read: Callable[[Path, Problems], Iterable[Row]]
    # What the sink calls its step.
    own_step: str
    # Glob patterns of its files in a folder, most specific first.
    files: tuple[str, ...] = ()
    # Whether all files of a pattern in a folder belong together.
    joins: bool = False
    # Whether its files in a folder are states of one run, each with the whole history: the last one is read.
    whole_folder: bool = False
    # Lower is tried first.
    rank: int = 50


@dataclass(frozen=True)
class RunLog:
    """One run as read: its rows in the order in which they were written."""

    name: str
    reader: RunReader
    paths: tuple[Path, ...]
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
