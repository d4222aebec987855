"""Trackio: a project's database, `PROJECT.db` in the folder that TRACKIO_DIR names; `PROJECT.db#RUN` is one run of it.

It is SQLite with JSON in it, which Python reads by itself. Tried on databases of trackio 0.43.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.errors import NotFinished
from rlaudit.files.parse_json import parse_json

SQLITE = b"SQLite format 3\x00"
# What the table of metrics has beside others in every release.
COLUMNS = {"run_name", "step", "metrics"}


def recognises(path: Path, start: bytes) -> bool:
    """Return whether it is a database with Trackio's table of metrics; MLflow's has one row for each number."""
    if not start.startswith(SQLITE):
        return False
    try:
        with closing(_opened(path)) as database:
            return {row[1] for row in database.execute("PRAGMA table_info(metrics)")} >= COLUMNS
    except sqlite3.Error:
        return False


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the logging calls. Raises NotFinished if the database is broken."""
    try:
        with closing(_opened(path)) as database:
            for number, run, step, text in database.execute(
                "SELECT id, run_name, step, metrics FROM metrics ORDER BY id"
            ):
                try:
                    values = parse_json(text)
                except ValueError as error:
                    problems.add(f"row {number}", f"not JSON: {error}")
                    continue
                if isinstance(values, dict):
                    yield Row(f"row {number}", step, values, str(run))
    except sqlite3.Error as error:
        raise NotFinished(f"{path} cannot be read: {error}", "wait until the run has logged, or copy it") from error


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


READER = RunReader(
    name="trackio",
    title="Trackio database",
    recognises=recognises,
    read=read,
    own_step="step",
    files=("*.db",),
    rank=20,
)
