"""A table whose columns have other names than ours (`compare --columns THEIRS=OURS`).

What the user names counts: a column that has our name already is not read if another one was named for it.

One column may say which sequences share a prompt if a table's prompt ids do not (`compare --groups COLUMN`). What a
table calls prompt_id stays the name of the prompt, by which a trainer's table is joined; if a table has none,
the column is that too. A sequence without a value there is of its own prompt's group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlaudit.errors import UsageError

PROMPT = "prompt_id"
IDENTITY = (PROMPT, "sample_id")


@dataclass(frozen=True)
class RenamedColumns:
    """theirs: the table's name of each of our columns that has another one there."""

    theirs: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether any column has another name."""
        return bool(self.theirs)

    def in_table(self, ours: Iterable[str]) -> list[str]:
        """Return the table's names of our columns."""
        return [self.theirs.get(name, name) for name in ours]

    def ours(self, theirs: Sequence[str]) -> list[str]:
        """Return our names of the table's columns, in order; one that we do not know for a column that is not read."""
        known = {name: own for own, name in self.theirs.items()}
        return [known.get(name, f"({name})" if name in self.theirs else name) for name in theirs]

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return one record under our names."""
        return dict(zip(self.ours(list(record)), record.values(), strict=True))

    def of(self, names: Iterable[str]) -> "RenamedColumns":
        """Return those that a table has."""
        names = set(names)
        return RenamedColumns({own: name for own, name in self.theirs.items() if name in names})


AS_OURS = RenamedColumns()


def check_used(renamed: RenamedColumns, tables: Iterable[RenamedColumns]) -> None:
    """Raises UsageError for a column that none of the tables has. tables: the columns that each of them has."""
    used = {name for table in tables for name in table.theirs.values()}
    unused = [name for name in renamed.theirs.values() if name not in used]
    if unused:
        raise UsageError(f"--columns names {unused[0]!r}, which no table has")


def parse_columns(given: Iterable[str], known: Iterable[str]) -> RenamedColumns:
    """Read THEIRS=OURS. known: the columns of ours. Raises UsageError for what names none of them, or one twice."""
    theirs: dict[str, str] = {}
    known = list(known)
    for text in given:
        name, _, own = text.rpartition("=")
        if not name or own not in known:
            said = f"--columns {text!r} names no column of ours" if name else f"--columns {text!r} is no THEIRS=OURS"
            raise UsageError(said, f"there are: {', '.join(known)}")
        if own in theirs:
            raise UsageError(f"--columns names {own} twice: {theirs[own]} and {name}")
        theirs[own] = name
    return RenamedColumns(theirs)


def identity(groups: str) -> tuple[str, ...]:
    """Return the columns that tell sequences apart in a table whose prompts are called by this column."""
    return tuple(groups if name == PROMPT else name for name in IDENTITY)


def not_there(path: Path, column: str, names: Iterable[str], known_by: str) -> UsageError:
    """Return the error for a column that a table lacks. known_by: how its format tells groups by itself."""
    told = f"; left out, groups are told by {known_by}" if known_by else ""
    return UsageError(f"{path} has no column {column!r} for --groups", f"there are: {', '.join(names)}{told}")


def no_column_tells(path: Path, what: str, known_by: str) -> UsageError:
    """Return the error for a record of many sequences, whose values are of all of them. what: the record."""
    return UsageError(
        f"{path}: {what} holds many sequences, so no column of it can be given with --groups",
        f"leave it out: groups are told by {known_by}",
    )
