"""One JSON object of metrics, each with its values by step: `{"train/reward": {"1": 0.2, "2": 0.3}}`.

NeMo-RL's own jobs write it from TensorBoard's files (tests/json_dump_tb_logs.py) and check it afterwards.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.errors import NotFinished
from rlaudit.files.parse_json import parse_json

# Of the first metric, its first step.
_BEGIN = re.compile(rb'\{\s*"[^"]+"\s*:\s*\{\s*"\d+"\s*:\s*[-\dNI]')


def recognises(_path: Path, start: bytes) -> bool:
    """Return whether the first metric of an object has a number by step."""
    return _BEGIN.match(start.removeprefix(BOM_UTF8).lstrip()) is not None


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield each value of each metric. Raises NotFinished if the file is cut off: it is one JSON document."""
    try:
        metrics = parse_json(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise NotFinished(f"{path} is not whole JSON: {error}") from error
    for name, by_step in metrics.items() if isinstance(metrics, dict) else ():
        if isinstance(by_step, dict):
            yield from (Row(f"{name}, {step}", step, {name: value}) for step, value in by_step.items())
        else:
            problems.add(name, "no values by step")


READER = RunReader(
    name="metrics-json",
    title="JSON of metrics by step",
    recognises=recognises,
    read=read,
    own_step="step",
    files=("metrics.json",),
    rank=20,
)
