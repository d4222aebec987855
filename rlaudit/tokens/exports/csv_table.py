"""rlaudit's own token table as CSV or TSV: a header, then one row per token, as pandas writes it by `to_csv`.

The separator is a comma, or a tab in a file named .tsv. An empty field is no value. Lists (rollout_top_logprobs) cannot
stand in a field: columns that hold no numbers are names, of prompts and samples, or left out.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from rlaudit.files.remote_log import opened_log
from rlaudit.tokens.export import Export, Part
from rlaudit.tokens.exports.jsonl_table import sequences_of
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.logged_sequence import batches_of
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import IDENTITY
from rlaudit.tokens.token_batch import TokenBatch

SEPARATORS = {".csv": ",", ".tsv": "\t"}
LONGEST_HEADER = 1 << 16


def recognise(path: Path) -> bool:
    """Return whether a file named .csv or .tsv has the columns of a token table."""
    return {*IDENTITY, "rollout_logprob"} <= set(columns(path))


def columns(path: Path) -> list[str]:
    """Return the columns of the header; none of a file with another ending."""
    separator = SEPARATORS.get(path.suffix)
    if separator is None:
        return []
    with opened_log(path) as file:
        header = file.read(LONGEST_HEADER).split(b"\n", 1)[0].decode("utf-8-sig", errors="replace")
    return [name.strip().strip('"') for name in header.split(separator)]


def read(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Read every column."""
    sequences = sequences_of(_rows(path, faults), path, faults, part.renamed)
    return batches_of((sequence for sequence in sequences if sequence is not None), prompts)


def _rows(path: Path, faults: Faults) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the line and the values of each row; a row that does not fit the header ends the file."""
    how = pa.csv.ParseOptions(delimiter=SEPARATORS[path.suffix])
    # Digits of a prompt's name are a name: 007 is not 7.
    types = pa.csv.ConvertOptions(column_types=dict.fromkeys(IDENTITY, pa.string()), strings_can_be_null=True)
    line = 1
    try:
        with opened_log(path) as file, pa.csv.open_csv(file, parse_options=how, convert_options=types) as batches:
            for batch in batches:
                for row in batch.to_pylist():
                    line += 1
                    yield line, row
    except (pa.ArrowException, OSError) as error:
        faults.add(Fault(path, FaultKind.UNREAD, f"cannot be read further: {error}", line + 1))


EXPORT = Export(
    name="token-table-csv",
    title="rlaudit token table (CSV)",
    files="*.csv, *.tsv",
    recognise=recognise,
    read=read,
    columns=columns,
)
