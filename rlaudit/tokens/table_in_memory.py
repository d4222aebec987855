"""A token table in memory: a DataFrame, an Arrow table, or a dict of columns.

Rows and columns are those of a token table in Parquet (`exports/parquet_table.py`). In a dict each column is a list, an
array or a tensor; one of two dimensions has a sequence in each row. What offers Arrow's C interface, as Polars and
DuckDB do (`__arrow_c_stream__`), is read as a DataFrame is.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rlaudit.errors import UsageError
from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import TokenTable, renamed_part
from rlaudit.tokens.parquet import batches_in_memory
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import AS_OURS, RenamedColumns
from rlaudit.tokens.token_batch import TokenBatch

EXPECTED = "expected a path, a DataFrame, a pyarrow table, or a dict of columns by name"


def table_in_memory(table: Any, name: str, of_trainer: bool = False, renamed: RenamedColumns = AS_OURS) -> TokenTable:
    """Return a table under the name that messages and the report call it.

    Raises UsageError for what is no table, for columns of unequal lengths, and for a missing column.
    """
    columns = _as_arrow(table, name)
    path = Path(name)
    part = renamed_part(columns.column_names, path, of_trainer, renamed)
    export = Export(
        name="table-in-memory",
        title="token table in memory",
        files="none",
        recognise=lambda _path: False,
        read=partial(_read, columns),
    )
    return TokenTable(path, export, (path,), part)


def _read(
    table: pa.Table, path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    return batches_in_memory(table, path, faults, prompts, columns, part)


def _as_arrow(table: Any, name: str) -> pa.Table:
    try:
        if isinstance(table, Mapping):
            return pa.table({str(column): _column(values) for column, values in table.items()})
        return table if isinstance(table, pa.Table) else pa.table(table)
    except (pa.ArrowException, TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"{name}: {type(table).__name__} is read as no table: {error}", EXPECTED) from error


def _column(values: Any) -> Any:
    """Return a column that Arrow takes: of a tensor, also in bfloat16 or on a GPU, its numbers."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray):
        return values if values.ndim == 1 else list(values)
    if hasattr(values, "tolist"):
        return values.tolist()
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]
