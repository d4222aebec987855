"""W&B: a panel exported as CSV, with a column "RUN - METRIC" for each run.

A panel's export has one metric; put the exports of several panels in one folder to read them together. The
__MIN and __MAX columns are the spread inside W&B's own sampling and are left out.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.curves.tables import header_of, step_column

SEPARATOR = " - "


def recognises(path: Path, start: bytes) -> bool:
    """A table whose first column is a step and whose other columns are named after runs."""
    header = header_of(start)
    return len(header) > 1 and step_column(header[:1]) is not None and all(SEPARATOR in name for name in header[1:])


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """One row for each run and line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        runs: dict[str, list[tuple[int, str]]] = {}
        for index, name in enumerate(header[1:], start=1):
            run, _, metric = name.rpartition(SEPARATOR)
            if not metric.endswith(("__MIN", "__MAX")):
                runs.setdefault(run, []).append((index, metric))
        for line in lines:
            if len(line) != len(header):
                problems.add(f"line {lines.line_num}", f"{len(line)} cells where the header has {len(header)}")
                continue
            for run, columns in runs.items():
                values = {metric: line[index] for index, metric in columns if line[index] != ""}
                if values:
                    yield Row(f"line {lines.line_num}", line[0], values, run)


READER = RunReader(
    name="wandb-csv",
    title="W&B panel export (CSV)",
    recognises=recognises,
    read=read,
    own_step="Step",
    files=("*.csv",),
    joins=True,
    rank=60,
)
