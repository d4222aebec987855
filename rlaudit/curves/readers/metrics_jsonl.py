"""JSON lines with a step in every object.

prime-rl's file monitor (`metrics.jsonl`); verl's `file` logger, whose metrics are an object called data; ms-swift's
`logging.jsonl`, whose step is the first half of "global_step/max_steps"; and most home-made logs.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlaudit.curves.json_lines import first_object, json_lines
from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.curves.tables import step_column

STEP_OF_MOST = "global_step/max_steps"
DATA = "data"


def recognises(path: Path, start: bytes) -> bool:
    """Return whether there are objects in which one key is called step, global_step, ..."""
    return _step_key(first_object(start)) is not None


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the logging calls."""
    for place, entry in json_lines(path, problems):
        name = _step_key(entry)
        step = None if name is None else entry[name]
        if name == STEP_OF_MOST and isinstance(step, str):
            step = step.partition("/")[0]
        values = {key: value for key, value in entry.items() if key != name}
        nested = values.get(DATA)
        yield Row(place, step, {**values, **nested} if isinstance(nested, dict) else values)


def _step_key(entry: Mapping[str, Any]) -> str | None:
    return STEP_OF_MOST if STEP_OF_MOST in entry else step_column(list(entry))


READER = RunReader(
    name="jsonl",
    title="JSON lines",
    recognises=recognises,
    read=read,
    own_step="step",
    files=("metrics.jsonl", "logging.jsonl"),
    rank=75,
)
