"""The figures of a run whose report has none, from the tokens.parquet beside it (reports of older releases)."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlaudit.errors import UsageError
from rlaudit.tokens.arrow_columns import floats, plain
from rlaudit.tokens.figures.token_figures import TokenFigures

NEEDED = ("block", "arm", "position", "rollout_logprob", "trainer_logprob")
NAMES = ("block", "arm")
ENTROPY = "trainer_entropy"
Figures = dict[tuple[str, str], TokenFigures]


def figures_of_run(path: Path) -> list[dict[str, Any]]:
    """One entry for each arm, in the order of the table. Raises UsageError for a file that is no token table."""
    figures: Figures = {}
    try:
        with pq.ParquetFile(path, read_dictionary=list(NAMES)) as file:
            held = file.schema_arrow.names
            missing = [name for name in NEEDED if name not in held]
            if missing:
                raise UsageError(f"{path} has no column {missing[0]}", "is it of rlaudit ablate?")
            wanted = [*NEEDED, *([ENTROPY] if ENTROPY in held else [])]
            for batch in file.iter_batches(1 << 18, columns=wanted):
                _add(figures, pa.Table.from_batches([batch]))
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{path} is not a token table: {error}") from error
    return [one.as_dict() for one in figures.values()]


def _add(figures: Figures, table: pa.Table) -> None:
    block, arm = (table.column(name).combine_chunks().dictionary_encode() for name in NAMES)
    block_T, arm_T = (plain(pc.fill_null(one.indices, -1)).astype(np.int64) for one in (block, arm))
    columns = {name: floats(table, name) for name in table.column_names if name not in NAMES}
    own_T = block_T * len(arm.dictionary) + arm_T
    codes, firsts = np.unique(own_T, return_index=True)
    for code in codes[np.argsort(firsts)].tolist():
        rows_T = own_T == code
        place, number = divmod(code, len(arm.dictionary))
        names = (str(block.dictionary[place].as_py()), str(arm.dictionary[number].as_py()))
        figures.setdefault(names, TokenFigures(names[1], names[0])).add(
            columns["rollout_logprob"][rows_T],
            columns["trainer_logprob"][rows_T],
            columns["position"][rows_T],
            columns[ENTROPY][rows_T] if ENTROPY in columns else None,
        )
