"""CSV: a column named step (or global_step, _step, ...) and a column per metric, or step, metric, value.

A column run, run_name or seed says that one file holds several runs; `FILE#RUN` names one of them. So do the columns
"RUN - METRIC" of a panel that W&B exports: put the exports of several panels in one folder to read them together. Their
__MIN and __MAX columns are the spread inside W&B's own sampling and are left out.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.curves.tables import header_of, named_once, step_column, table_rows

# Of a panel of W&B, between the name of a run and that of its metric.
SEPARATOR = " - "
SPREADS = ("__MIN", "__MAX")


def recognises(path: Path, start: bytes) -> bool:
    """Return whether the file begins with a header line that has a step."""
    header = header_of(start)
    return len(header) > 1 and step_column(header) is not None


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the lines of the table; of a panel one row for each line and run."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        columns, cells = named_once(header, "line 1", problems), _cells(lines, header, problems)
        panel = step_column(header[:1]) is not None and all(SEPARATOR in name for name in header[1:])
        yield from _panel_rows(columns, cells) if panel else table_rows(columns, cells)


def _panel_rows(columns: Sequence[str], lines: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[Row]:
    """Yield the rows of every run of a panel."""
    step, *metrics = columns
    for place, line in lines:
        runs: dict[str, dict[str, str]] = {}
        for column in metrics:
            run, _, metric = column.rpartition(SEPARATOR)
            if line[column] != "" and not metric.endswith(SPREADS):
                runs.setdefault(run, {})[metric] = line[column]
        for run, values in runs.items():
            yield Row(place, line[step], values, run)


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
