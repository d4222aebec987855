"""Parquet: the same columns as CSV."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.curves.tables import named_once, table_rows
from rlaudit.errors import NotFinished

MAGIC = b"PAR1"
BATCH = 4096


def recognises(path: Path, start: bytes) -> bool:
    """Return whether the file begins with the magic bytes of the format."""
    return start.startswith(MAGIC)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the rows of the table, in batches. Raises NotFinished if the file's footer is missing or broken."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            columns = named_once(table.schema_arrow.names, "", problems)
            yield from table_rows(columns, _lines(table))
    except (pyarrow.ArrowException, OSError) as error:
        raise NotFinished(f"{path} is not a whole Parquet file: {error}") from error


def _lines(table: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    for batch in table.iter_batches(batch_size=BATCH):
        for line in batch.to_pylist():
            number += 1
            yield f"row {number}", line


READER = RunReader(
    name="parquet", title="Parquet", recognises=recognises, read=read, own_step="step", files=("*.parquet",), rank=70
)
