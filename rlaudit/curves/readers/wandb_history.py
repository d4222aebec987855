"""W&B: a run's history as JSON lines, one object with `_step` per logging call.

This is what `wandb-history.jsonl` of old offline runs holds, and what writing `run.scan_history()` line by line
gives.
"""

from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.json_lines import first_object, json_lines
from rlaudit.curves.run_log import Problems, Row, RunReader


def recognises(path: Path, start: bytes) -> bool:
    """Return whether there are objects with `_step`."""
    return "_step" in first_object(start)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the logging calls."""
    for place, entry in json_lines(path, problems):
        yield Row(place, entry.get("_step"), {key: value for key, value in entry.items() if not key.startswith("_")})


READER = RunReader(
    name="wandb-history",
    title="W&B history (JSON lines)",
    recognises=recognises,
    read=read,
    own_step="_step",
    files=("wandb-history.jsonl",),
    rank=20,
)
