"""ms-swift: `logging.jsonl`, whose step is the first half of "global_step/max_steps"."""

from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.json_lines import first_object, json_lines
from rlaudit.curves.run_log import Problems, Row, RunReader

STEP = "global_step/max_steps"


def recognises(path: Path, start: bytes) -> bool:
    """Objects with that key."""
    return STEP in first_object(start)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """The logging calls."""
    for place, found in json_lines(path, problems):
        step = found.get(STEP)
        at = step.split("/")[0] if isinstance(step, str) else found.get("global_step")
        yield Row(place, at, {key: value for key, value in found.items() if key != STEP})


READER = RunReader(
    name="ms-swift",
    title="ms-swift logging.jsonl",
    recognises=recognises,
    read=read,
    own_step=STEP,
    files=("logging.jsonl",),
    rank=15,
)
