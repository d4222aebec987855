"""Tables as rows of a run: wide (a column per metric) or long (a metric name and a value per line)."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rlaudit.curves.run_log import Problems, Row

STEP_COLUMNS = (
    "step", "Step", "_step", "global_step", "train/global_step", "training/global_step", "trainer/global_step",
    "iteration", "update", "steps",
)  # fmt: skip
RUN_COLUMNS = ("run", "run_name", "seed", "run_id")
METRIC_COLUMNS = ("metric", "key", "tag", "name")
VALUE_COLUMNS = ("value",)


def header_of(start: bytes) -> list[str]:
    """Return the first line of a file as cells of a CSV; [] if it is not CSV, as in a binary file."""
    first = re.split(r"[\r\n]", start.decode("utf-8", "replace").lstrip("\ufeff"), maxsplit=1)[0]
    try:
        return next(csv.reader([first]), [])
    except csv.Error:
        return []


def named_once(columns: Sequence[str], place: str, problems: Problems) -> list[str]:
    """Return the columns that can be told apart by their names; the others become problems."""
    several = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    for name in several:
        problems.add(place, f"several columns are called {name!r:.60}; none of them is used")
    return [name for name in columns if name not in several]


def step_column(columns: Sequence[str]) -> str | None:
    """Return the column that holds the step, None if no column has such a name."""
    return _first(STEP_COLUMNS, columns)


def table_rows(columns: Sequence[str], lines: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Row]:
    """Yield rows of a table whose lines are (place, {column: value}); only `columns` are read."""
    step, run = step_column(columns), _first(RUN_COLUMNS, columns)
    metric, value = _first(METRIC_COLUMNS, columns), _first(VALUE_COLUMNS, columns)
    for place, line in lines:
        name = None if run is None or line[run] in (None, "") else f"{line[run]}"
        logged_step = None if step is None else line[step]
        if metric is not None and value is not None:
            yield Row(place, logged_step, {f"{line[metric]}": line[value]}, name)
        else:
            yield Row(place, logged_step, {key: line[key] for key in columns if key not in (step, run)}, name)


def _first(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)
