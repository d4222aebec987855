"""JSON lines as training loops leave them: half-written last lines, NaN, now and then something else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.curves.run_log import Problems
from rlaudit.files.parse_json import parse_json


def json_lines(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("line N", object) for every line that holds an object; the others become problems."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            place = f"line {number}"
            try:
                entry = parse_json(line)
            except ValueError:
                whole = line.endswith(b"\n")
                problems.add(place, "not JSON" if whole else "cut off in the middle, as an interrupted run leaves it")
                continue
            if isinstance(entry, dict):
                yield place, entry
            else:
                problems.add(place, f"a {type(entry).__name__} where an object was expected")


def first_object(start: bytes) -> dict[str, Any]:
    """Return the first line that holds an object, among the first bytes of a file; empty if there is none."""
    for line in start.splitlines():
        try:
            entry = parse_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            return entry
    return {}
