"""Token tables in Parquet, one row per token or one row per sequence with lists, streamed row group by row group.

No sequence is split: the rows after the last sequence end of one part are carried into the next. Only the requested
columns are decoded. A table in memory is read alike.
"""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.remote_log import is_remote, opened_log
from rlaudit.tokens.arrow_columns import (
    codes,
    floats,
    is_list,
    is_list_type,
    is_number_type,
    list_lengths,
    padded_lists,
    positions,
    taken,
    token_column,
    token_ids,
)
from rlaudit.tokens.export import WHOLE, Part
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.json_lines import beginning
from rlaudit.tokens.parallel_map import prefetched
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import IDENTITY
from rlaudit.tokens.token_batch import MISSING_TOP, NO_TOKEN, TOKEN_COLUMNS, TOPS, Column, TokenBatch

REQUIRED = (*IDENTITY, "rollout_logprob")
LOGPROBS = ("rollout_logprob", "trainer_logprob")
KNOWN = (*IDENTITY, *LOGPROBS, "position", "step", "token_id", *TOKEN_COLUMNS, "reward", *TOPS)
# Of one row per sequence, for scoring; the ids join the turns of conversations as well.
PROMPT_IDS = "prompt_token_ids"
PROMPTS = (PROMPT_IDS, "prompt", "messages")
# What the metrics need, and what samples of one prompt are held by; everything else is read for a sample only.
MEASURED = (
    *IDENTITY,
    *LOGPROBS,
    "position",
    "step",
    "loss_mask",
    "trainer_entropy",
    "token_id",
    "rollout_version",
    "trainer_version",
    "reward",
)
# A number, or a text that stands for one.
NAMES = ("batch_id", "step")
NUMBERS = ("position", "token_id", "reward", *(name for name in TOKEN_COLUMNS if name not in NAMES))
# These distinguish a sequence from its neighbour, besides its position.
BOUNDS = (*IDENTITY, "step")
# What pyarrow raises for bytes that are not Parquet, or no longer; names of columns are decoded by Python.
DAMAGED = (pa.ArrowException, OSError, UnicodeDecodeError)
MAGIC = b"PAR1"
ROWS = 1 << 18
LONGEST_SEQUENCE = 64 * ROWS
# Of a row group that is searched for causes, however long they are.
FEWEST_SEQUENCES = 256


def columns_of(path: Path) -> list[str] | None:
    """Return the names of its columns; None if the file is not Parquet."""
    try:
        # A table says what it is at its end, which a web server may not send without the rest.
        if is_remote(path) and not beginning(path).startswith(MAGIC):
            return None
        return list(pq.read_schema(open_at_random(path)).names)
    except DAMAGED:
        return None


def open_at_random(path: Path) -> str | BinaryIO:
    """Return what pyarrow reads a Parquet file from."""
    return opened_log(path, at_random=True) if is_remote(path) else str(path)


def parquet_batches(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str] = KNOWN, part: Part = WHOLE
) -> Iterator[TokenBatch]:
    """Return the file's sequences in batches of about a row group, with these columns only.

    Raises NotFinished for a file that ends in the middle, UsageError for types that cannot be logprobs.
    """
    names = _wanted(pq.read_schema(open_at_random(path)), path, columns, part)
    return prefetched(_batches(_tables(path, names, part), path, faults, prompts))


def batches_in_memory(
    table: pa.Table, path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
) -> Iterator[TokenBatch]:
    """Return the sequences of a table in memory. path: what messages call it. Raises UsageError as for a file."""
    names = part.renamed.in_table(_wanted(table.schema, path, columns, part))
    pieces = table.select(names).combine_chunks().to_batches(max_chunksize=ROWS)
    return _batches((_of_part(piece, part) for piece in pieces if piece.num_rows), path, faults, prompts)


def _wanted(schema: pa.Schema, path: Path, columns: Collection[str], part: Part) -> list[str]:
    return [name for name in _columns(schema, path, part) if name in {*IDENTITY, *LOGPROBS, *columns}]


def _batches(tables: Iterable[pa.Table], path: Path, faults: Faults, prompts: PromptNumbers) -> Iterator[TokenBatch]:
    carried: pa.Table | None = None
    for table in tables:
        whole = (
            table if carried is None or not carried.num_rows else pa.concat_tables([carried, table]).combine_chunks()
        )
        if _of_whole_sequences(whole):
            yield from _of_lists(whole, path, faults, prompts)
            continue
        rows = _Rows(whole)
        last = int(rows.starts[-1]) if rows.starts.size else 0
        carried = whole.slice(last)
        if carried.num_rows > LONGEST_SEQUENCE:
            raise NotFinished(
                f"{path}: one sequence has more than {LONGEST_SEQUENCE} tokens",
                "prompt_id, sample_id or position must change where a sequence ends",
            )
        yield from rows.batches(0, len(rows.starts) - 1, path, faults, prompts)
    if carried is not None and carried.num_rows:
        remainder = _Rows(carried)
        yield from remainder.batches(0, len(remainder.starts), path, faults, prompts)


def parquet_sample(path: Path, tokens: int, prompts: PromptNumbers, part: Part = WHOLE) -> Iterator[TokenBatch]:
    """Yield whole sequences with all columns from row groups spread over the file, about `tokens` of them.

    Raises NotFinished if one of them cannot be read.
    """
    try:
        yield from _sample(path, tokens, prompts, part)
    except DAMAGED as error:
        raise _cut_off(path, error) from error


def _sample(path: Path, tokens: int, prompts: PromptNumbers, part: Part) -> Iterator[TokenBatch]:
    row_groups = pq.read_metadata(open_at_random(path)).num_row_groups
    chosen = sorted({int(place) for place in np.linspace(0, row_groups - 1, min(row_groups, 8))}) if row_groups else []
    names = [*part.renamed.in_table(_columns(pq.read_schema(open_at_random(path)), path, part)), *part.where]
    for group in chosen:
        share = tokens // len(chosen)
        with _opened(path, names) as file:
            first = next(file.iter_batches(4 * share, row_groups=[group], columns=names), None)
        table = None if first is None else _of_part(first, part)
        if table is None or not table.num_rows:
            continue
        silent = Faults()
        if _of_whole_sequences(table):
            yield from _of_lists(table.slice(0, _enough(table, share)), path, silent, prompts)
            continue
        rows = _Rows(table)
        # The first rows of a row group may be the end of a sequence, the last rows the beginning of one.
        first_whole = 0 if rows.begins_whole else 1
        enough = first_whole + int(np.searchsorted(rows.starts[first_whole:], rows.starts[0] + share))
        complete = len(rows.starts) if group == row_groups - 1 and table.num_rows < 4 * share else len(rows.starts) - 1
        yield from rows.batches(first_whole, min(enough, complete), path, silent, prompts)


def _enough(table: pa.Table, tokens: int) -> int:
    """Return how many rows of lists, one a sequence, hold so many tokens; FEWEST_SEQUENCES if these are long."""
    logprobs = table.column(next(name for name in LOGPROBS if name in table.column_names))
    return max(FEWEST_SEQUENCES, 1 + int(np.searchsorted(np.cumsum(list_lengths(logprobs)), tokens)))


class _Rows:
    """A contiguous table of tokens and where its sequences start."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()
        self.position_T = None
        if "position" in table.column_names:
            self.position_T = positions(self.table)
        changed_T = np.zeros(max(0, table.num_rows - 1), dtype=np.bool_)
        for name in (name for name in BOUNDS if name in table.column_names):
            codes_T = codes(self.table, name)
            changed_T |= codes_T[1:] != codes_T[:-1]
        if self.position_T is not None:
            changed_T |= self.position_T[1:] <= self.position_T[:-1]
        first = [0] if table.num_rows else []
        self.starts = np.concatenate([first, np.flatnonzero(changed_T) + 1]).astype(np.int64)

    @property
    def begins_whole(self) -> bool:
        """Whether the first row begins a sequence, as far as its position shows."""
        return self.position_T is None or not self.position_T.size or bool(self.position_T[0] == 0)

    def batches(self, begin: int, end: int, path: Path, faults: Faults, prompts: PromptNumbers) -> Iterator[TokenBatch]:
        """Yield the sequences begin..end as one batch, or nothing; those with gaps are left out and named."""
        if begin >= end:
            return
        stop = int(self.starts[end]) if end < len(self.starts) else self.table.num_rows
        starts = self.starts[begin:end]
        rows = slice(int(starts[0]), stop)
        lengths_S = np.diff(starts, append=stop)
        position_T = np.arange(rows.start, stop) - np.repeat(starts, lengths_S)
        batch = self._batch(rows, starts, lengths_S, position_T, prompts)
        if self.position_T is not None:
            off_T = self.position_T[rows] != position_T
            if off_T.any():
                batch = _without_gaps(batch, self.position_T[rows], off_T, path, faults)
        if batch.sequences:
            yield batch

    def _batch(
        self, rows: slice, starts: Column, lengths_S: Any, position_T: Any, prompts: PromptNumbers
    ) -> TokenBatch:
        part = self.table.slice(rows.start, rows.stop - rows.start)
        names = set(part.column_names)
        prompt_names_S, sample_names_S = (taken(self.table, name, starts) for name in IDENTITY)
        tokens = part.num_rows
        return TokenBatch(
            rollout_logprobs_T=_logprobs(part, "rollout_logprob"),
            trainer_logprobs_T=_logprobs(part, "trainer_logprob"),
            token_id_T=token_ids(part) if "token_id" in names else np.broadcast_to(np.int64(NO_TOKEN), tokens),
            position_T=position_T,
            sequence_T=np.repeat(np.arange(len(starts)), lengths_S),
            prompt_S=prompts.of(prompt_names_S.tolist()),
            prompt_names_S=prompt_names_S,
            sample_names_S=sample_names_S,
            token_columns={name: token_column(part, name) for name in TOKEN_COLUMNS if name in names},
            sequence_columns={
                name: token_column(part, name)[starts - rows.start] for name in ("reward", "step") if name in names
            },
            **_top_lists(part),
        )


def _of_whole_sequences(table: pa.Table) -> bool:
    """Return whether a row is a sequence, and its columns lists."""
    return is_list(table, next(name for name in LOGPROBS if name in table.column_names))


def _logprobs(part: pa.Table, name: str) -> Column:
    return floats(part, name) if name in part.column_names else np.full(part.num_rows, np.nan)


def _without_gaps(batch: TokenBatch, written_T: Any, off_T: Any, path: Path, faults: Faults) -> TokenBatch:
    place = int(np.argmax(off_T))
    first = int(batch.sequence_T[place])
    where = (
        f"begins at position {written_T[place]}"
        if place == batch.offsets[first]
        else f"position {written_T[place]} follows position {written_T[place - 1]}"
    )
    broken = np.unique(batch.sequence_T[off_T])
    problem = f"{where}: tokens are missing, or the table is not sorted by sequence and position"
    fault = Fault(path, FaultKind.GAP, f"{problem}; the sequence is left out", None, batch.name_of(first))
    faults.add(fault, sequences=broken.size, tokens=int(batch.lengths_S[broken].sum()), count=broken.size)
    return batch.take(np.setdiff1d(np.arange(batch.sequences), broken))


def _top_lists(rows: pa.Table) -> dict[str, Column | None]:
    """Return the fields of top lists, ids as wide as logprobs. NaN where a token has more or fewer logprobs than ids,
    for `sound.py` to find; a token that the loss does not count may stay so."""
    columns = [name for name in TOPS if name in rows.column_names]
    tops = {name: padded_lists(rows.column(name), MISSING_TOP[name]) for name in columns}
    for side in ("rollout", "trainer"):
        ids, logprobs = f"{side}_top_ids", f"{side}_top_logprobs"
        if {ids, logprobs} <= tops.keys():
            widest = max(tops[ids].shape[1], tops[logprobs].shape[1])
            for name in (ids, logprobs):
                wider = ((0, 0), (0, widest - tops[name].shape[1]))
                tops[name] = np.pad(tops[name], wider, constant_values=MISSING_TOP[name])
            tops[logprobs][list_lengths(rows.column(ids)) != list_lengths(rows.column(logprobs))] = np.nan
    return {field: tops.get(name) for name, field in TOPS.items()}


def _of_lists(table: pa.Table, path: Path, faults: Faults, prompts: PromptNumbers) -> Iterator[TokenBatch]:
    from rlaudit.tokens.logged_sequence import batches_of, sequence_of_record

    records = (record for batch in table.to_batches(1024) for record in batch.to_pylist())
    logged = (sequence_of_record(record, path, None, faults) for record in records)
    yield from batches_of((sequence for sequence in logged if sequence is not None), prompts)


def _tables(path: Path, names: list[str], part: Part) -> Iterator[pa.Table]:
    names = [*part.renamed.in_table(names), *part.where]
    try:
        with _opened(path, names) as file:
            for batch in file.iter_batches(ROWS, columns=names, use_threads=True):
                table = _of_part(batch, part)
                if table.num_rows:
                    yield table
    except DAMAGED as error:
        raise _cut_off(path, error) from error


def _of_part(batch: pa.RecordBatch, part: Part) -> pa.Table:
    """Return the rows of a part, under our names."""
    table = pa.Table.from_batches([batch])
    table = table.rename_columns(part.renamed.ours(table.column_names)) if part.renamed else table
    for name, value in part.where.items():
        table = table.filter(pc.equal(pc.cast(table.column(name), pa.string()), value))
    return table.drop_columns(list(part.where)) if part.where else table


def _cut_off(path: Path, error: Exception) -> NotFinished:
    return NotFinished(f"{path} cannot be read to its end: {error}", "was it still being written?")


def _opened(path: Path, names: list[str]) -> pq.ParquetFile:
    footer = pq.read_metadata(open_at_random(path))
    texts = _texts(footer.schema.to_arrow_schema(), names)
    # Buffering ahead keeps every column chunk that was read until the file is closed.
    return pq.ParquetFile(open_at_random(path), metadata=footer, read_dictionary=texts, pre_buffer=False)


def _texts(schema: pa.Schema, names: list[str]) -> list[str]:
    texts = (pa.types.is_string, pa.types.is_large_string)
    return [name for name in names if name in schema.names and any(is_a(schema.field(name).type) for is_a in texts)]


def _columns(written: pa.Schema, path: Path, part: Part) -> list[str]:
    """Return the columns that a token table has. Raises UsageError for types that they cannot have."""
    ours = part.renamed.ours(written.names)
    schema = pa.schema([field.with_name(name) for field, name in zip(written, ours, strict=True)])
    # A column without any value has no type, and says no more than none.
    empty = {column.name for column in schema if pa.types.is_null(column.type)} - {*IDENTITY, *LOGPROBS}
    names = [name for name in schema.names if name in KNOWN and name not in empty]
    repeated = [name for name in names if schema.names.count(name) > 1]
    if repeated:
        raise UsageError(f"{path}: several columns are called {repeated[0]}", "keep one of them")
    by_sequence = next(is_list_type(schema.field(name).type) for name in LOGPROBS if name in names)
    names += [name for name in PROMPTS if by_sequence and schema.names.count(name) == 1]
    for name in names:
        kind = schema.field(name).type
        inner = kind.value_type if is_list_type(kind) else kind
        if name in LOGPROBS and not (is_number_type(inner) and is_list_type(kind) is by_sequence):
            expected = "lists of logprobs" if by_sequence else "logprobs"
            raise UsageError(f"{path}: column {name} holds {kind}, expected {expected} in nats (float)")
        # Of one row per sequence every value is looked at.
        if pa.types.is_nested(inner if by_sequence and name in NAMES else kind) and name in {*IDENTITY, *NAMES}:
            raise UsageError(f"{path}: column {name} holds {kind}, expected a text or a number")
        if not by_sequence and name in TOPS and not (is_list_type(kind) and is_number_type(inner)):
            raise UsageError(f"{path}: column {name} holds {kind}, expected lists of numbers")
        if not by_sequence and name in NUMBERS and not is_number_type(kind):
            raise UsageError(f"{path}: column {name} holds {kind}, expected numbers")
    return names
