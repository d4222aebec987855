"""CSV: a column named step (or global_step, _step, ...) and a column per metric, or step, metric, value.

A column run, run_name or seed says that one file holds several runs; `FILE#RUN` names one of them.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.curves.tables import header_of, named_once, step_column, table_rows


def recognises(path: Path, start: bytes) -> bool:
    """A header line with a step in it."""
    header = header_of(start)
    return len(header) > 1 and step_column(header) is not None


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """The lines of the table."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        yield from table_rows(named_once(header, "line 1", problems), _cells(lines, header, problems))


def _cells(lines: Any, header: list[str], problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    while True:
        try:
            line = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            problems.add(f"line {lines.line_num}", f"not CSV: {error}")
            continue
        if not line:
            continue
        if len(line) == len(header):
            yield f"line {lines.line_num}", dict(zip(header, line, strict=True))
        else:
            problems.add(f"line {lines.line_num}", f"{len(line)} cells where the header has {len(header)}")


READER = RunReader(
    name="csv", title="CSV", recognises=recognises, read=read, own_step="step", files=("*.csv",), joins=True, rank=70
)
