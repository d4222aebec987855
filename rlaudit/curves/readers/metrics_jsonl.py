"""JSON lines with a step in every object: prime-rl's file monitor (`metrics.jsonl`), and most home-made logs."""

from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.json_lines import first_object, json_lines
from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.curves.tables import step_column


def recognises(path: Path, start: bytes) -> bool:
    """Objects in which one key is called step, global_step, ..."""
    return step_column(list(first_object(start))) is not None


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """The logging calls."""
    for place, found in json_lines(path, problems):
        name = step_column(list(found))
        at = None if name is None else found[name]
        yield Row(place, at, {key: value for key, value in found.items() if key != name})


READER = RunReader(
    name="jsonl",
    title="JSON lines",
    recognises=recognises,
    read=read,
    own_step="step",
    files=("metrics.jsonl",),
    rank=75,
)
