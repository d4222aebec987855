"""verl: the `file` logger, one `{"step": N, "data": {...}}` per line."""

from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.json_lines import first_object, json_lines
from rlaudit.curves.run_log import Problems, Row, RunReader


def recognises(path: Path, start: bytes) -> bool:
    """Objects with step and data, data an object."""
    found = first_object(start)
    return "step" in found and isinstance(found.get("data"), dict)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """The logging calls."""
    for place, found in json_lines(path, problems):
        data = found.get("data")
        if isinstance(data, dict):
            yield Row(place, found.get("step"), data)
        else:
            problems.add(place, "no object called data")


READER = RunReader(
    name="verl-file", title="verl file logger", recognises=recognises, read=read, own_step="step", rank=20
)
