"""The column that says which sequences share a prompt, where a table's prompt ids do not (`compare --groups COLUMN`).

What a table calls prompt_id stays the name of the prompt, by which a trainer's table is joined; where a table has none,
the column is that too. A sequence without a value there is of its own prompt's group.
"""

from collections.abc import Iterable
from pathlib import Path

from rlaudit.errors import UsageError

PROMPT = "prompt_id"
IDENTITY = (PROMPT, "sample_id")


def identity(groups: str) -> tuple[str, ...]:
    """The columns that tell sequences apart in a table whose prompts are called by this column."""
    return tuple(groups if name == PROMPT else name for name in IDENTITY)


def not_there(path: Path, column: str, names: Iterable[str], known_by: str) -> UsageError:
    """What a column that a table lacks is answered with. known_by: how its format tells groups by itself."""
    told = f"; left out, groups are told by {known_by}" if known_by else ""
    return UsageError(f"{path} has no column {column!r} for --groups", f"there are: {', '.join(names)}{told}")


def no_column_tells(path: Path, what: str, known_by: str) -> UsageError:
    """The answer where a record holds many sequences, so that a value of it is of all of them. what: the record."""
    return UsageError(
        f"{path}: {what} holds many sequences, so no column of it can be given with --groups",
        f"leave it out: groups are told by {known_by}",
    )
