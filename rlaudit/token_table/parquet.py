"""Token tables in Parquet, one row per token or one row per sequence with lists, streamed row group by row group.

No sequence is split: the rows after the last sequence end of one part are carried into the next. Only the columns that
are asked for are decoded.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlaudit.errors import NotFinished, UsageError
from rlaudit.token_table.arrow_columns import (
    codes,
    floats,
    is_list,
    is_list_type,
    is_number_type,
    padded_lists,
    positions,
    taken,
    token_column,
    token_ids,
)
from rlaudit.token_table.fault import Fault, Faults
from rlaudit.token_table.prefetch import prefetched
from rlaudit.token_table.prompt_numbers import PromptNumbers
from rlaudit.token_table.token_batch import NO_TOKEN, TOKEN_COLUMNS, Column, TokenBatch

IDENTITY = ("prompt_id", "sample_id")
REQUIRED = (*IDENTITY, "rollout_logprob")
TOPS = ("rollout_top_ids", "rollout_top_logprobs", "trainer_top_ids", "trainer_top_logprobs")
KNOWN = (*REQUIRED, "trainer_logprob", "position", "token_id", *TOKEN_COLUMNS, "reward", *TOPS)
# What the metrics need; everything else is read for a sample only.
MEASURED = (*REQUIRED, "trainer_logprob", "position", "loss_mask", "trainer_entropy")
LOGPROBS = ("rollout_logprob", "trainer_logprob")
NUMBERS = ("position", "token_id", "reward", *(name for name in TOKEN_COLUMNS if name != "batch_id"))
ROWS = 1 << 18
LONGEST_SEQUENCE = 64 * ROWS
Equal = Mapping[str, Any]


def is_token_table(path: Path) -> bool:
    """Whether a Parquet file has the columns of a token table."""
    names = columns_of(path)
    return names is not None and set(REQUIRED) <= set(names)


def columns_of(path: Path) -> list[str] | None:
    """The names of its columns; None where the file is not Parquet."""
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError):
        return None


def parquet_batches(
    path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str] = KNOWN, where: Equal | None = None
) -> Iterator[TokenBatch]:
    """The file's sequences in batches of about a row group.

    where: column -> value; only rows that equal it. Raises NotFinished for a file that ends in the middle, UsageError
    for types that cannot be logprobs.
    """
    known = _known(path)
    wanted = [name for name in known if name in {*REQUIRED, *columns}]
    return prefetched(_batches(path, faults, prompts, wanted, where or {}))


def _batches(
    path: Path, faults: Faults, prompts: PromptNumbers, names: list[str], where: Equal
) -> Iterator[TokenBatch]:
    carried: pa.Table | None = None
    for part in _tables(path, names, where):
        whole = part if carried is None or not carried.num_rows else pa.concat_tables([carried, part]).combine_chunks()
        if is_list(whole, "rollout_logprob"):
            yield from _of_lists(whole, path, faults, prompts)
            continue
        table = _Rows(whole)
        last = int(table.starts[-1]) if table.starts.size else 0
        carried = whole.slice(last)
        if carried.num_rows > LONGEST_SEQUENCE:
            raise NotFinished(
                f"{path}: one sequence has more than {LONGEST_SEQUENCE} tokens",
                "prompt_id, sample_id or position must change where a sequence ends",
            )
        yield from table.batches(0, len(table.starts) - 1, path, faults, prompts)
    if carried is not None and carried.num_rows:
        rest = _Rows(carried)
        yield from rest.batches(0, len(rest.starts), path, faults, prompts)


def parquet_sample(path: Path, tokens: int, prompts: PromptNumbers, where: Equal | None = None) -> Iterator[TokenBatch]:
    """Whole sequences with all columns from row groups spread over the file, about `tokens` of them."""
    groups = pq.read_metadata(path).num_row_groups
    chosen = sorted({int(place) for place in np.linspace(0, groups - 1, min(groups, 8))}) if groups else []
    names = _known(path)
    for group in chosen:
        share = tokens // len(chosen)
        with pq.ParquetFile(path, read_dictionary=_texts(path, names), pre_buffer=False) as file:
            table = next(file.iter_batches(4 * share, row_groups=[group], columns=[*names, *(where or {})]), None)
        part = None if table is None else _filtered(pa.Table.from_batches([table]), where or {})
        if part is None or not part.num_rows:
            continue
        silent = Faults()
        if is_list(part, "rollout_logprob"):
            yield from _of_lists(part.slice(0, 256), path, silent, prompts)
            continue
        rows = _Rows(part)
        # The first rows of a row group may be the end of a sequence, the last rows the beginning of one.
        begun = 0 if rows.begins_whole else 1
        enough = begun + int(np.searchsorted(rows.starts[begun:], rows.starts[0] + share))
        complete = len(rows.starts) if group == groups - 1 and part.num_rows < 4 * share else len(rows.starts) - 1
        yield from rows.batches(begun, min(enough, complete), path, silent, prompts)


class _Rows:
    """A contiguous table of tokens and where its sequences start."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()
        self.position_T = None
        if "position" in table.column_names:
            self.position_T = positions(self.table)
        changed_T = np.zeros(max(0, table.num_rows - 1), dtype=np.bool_)
        for name in IDENTITY:
            codes_T = codes(self.table, name)
            changed_T |= codes_T[1:] != codes_T[:-1]
        if self.position_T is not None:
            changed_T |= self.position_T[1:] <= self.position_T[:-1]
        first = [0] if table.num_rows else []
        self.starts = np.concatenate([first, np.flatnonzero(changed_T) + 1]).astype(np.int64)

    @property
    def begins_whole(self) -> bool:
        """Whether the first row begins a sequence, as far as its position tells."""
        return self.position_T is None or not self.position_T.size or bool(self.position_T[0] == 0)

    def batches(self, begin: int, end: int, path: Path, faults: Faults, prompts: PromptNumbers) -> Iterator[TokenBatch]:
        """Sequences begin..end as one batch, or nothing; those with gaps are left out and named."""
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
        tops = {f"{name}_TK": padded_lists(part.column(name)) if name in names else None for name in TOPS}
        return TokenBatch(
            rollout_logprobs_T=floats(part, "rollout_logprob"),
            trainer_logprobs_T=floats(part, "trainer_logprob")
            if "trainer_logprob" in names
            else np.full(tokens, np.nan),
            token_id_T=token_ids(part) if "token_id" in names else np.broadcast_to(np.int64(NO_TOKEN), tokens),
            position_T=position_T,
            sequence_T=np.repeat(np.arange(len(starts)), lengths_S),
            prompt_S=prompts.of(prompt_names_S.tolist()),
            prompt_names_S=prompt_names_S,
            sample_names_S=sample_names_S,
            token_columns={name: token_column(part, name) for name in TOKEN_COLUMNS if name in names},
            sequence_columns={"reward": floats(part, "reward")[starts - rows.start]} if "reward" in names else {},
            **tops,
        )


def _without_gaps(batch: TokenBatch, written_T: Any, off_T: Any, path: Path, faults: Faults) -> TokenBatch:
    broken = np.unique(batch.sequence_T[off_T])
    for sequence in broken:
        begin = int(batch.offsets[sequence])
        place = begin + int(np.argmax(off_T[begin : batch.offsets[sequence + 1]]))
        where = (
            f"begins at position {written_T[place]}"
            if place == begin
            else (f"position {written_T[place]} follows position {written_T[place - 1]}")
        )
        said = f"{where}: tokens are missing, or the table is not sorted by sequence and position"
        faults.add(Fault(path, f"{said}; the sequence is left out", None, batch.name_of(int(sequence))), sequences=1)
    return batch.take(np.setdiff1d(np.arange(batch.sequences), broken))


def _of_lists(table: pa.Table, path: Path, faults: Faults, prompts: PromptNumbers) -> Iterator[TokenBatch]:
    from rlaudit.token_table.logged_sequence import batches_of, sequence_of_record

    records = ((row, record) for batch in table.to_batches(1024) for row, record in enumerate(batch.to_pylist()))
    logged = (sequence_of_record(record, path, None, faults) for _, record in records)
    yield from batches_of((one for one in logged if one is not None), prompts)


def _tables(path: Path, names: list[str], where: Equal) -> Iterator[pa.Table]:
    try:
        # Buffering ahead keeps every column chunk that was read until the file is closed.
        with pq.ParquetFile(path, read_dictionary=_texts(path, [*names, *where]), pre_buffer=False) as file:
            for batch in file.iter_batches(ROWS, columns=[*names, *where], use_threads=True):
                table = _filtered(pa.Table.from_batches([batch]), where)
                if table.num_rows:
                    yield table
    except (pa.ArrowInvalid, OSError) as error:
        raise NotFinished(f"{path} cannot be read to its end: {error}", "was it still being written?") from error


def _filtered(table: pa.Table, where: Equal) -> pa.Table:
    for name, value in where.items():
        table = table.filter(pc.equal(pc.cast(table.column(name), pa.string()), value))
    return table.drop_columns(list(where)) if where else table


def _texts(path: Path, names: list[str]) -> list[str]:
    schema = pq.read_schema(path)
    texts = (pa.types.is_string, pa.types.is_large_string)
    return [name for name in names if name in schema.names and any(is_a(schema.field(name).type) for is_a in texts)]


def _known(path: Path) -> list[str]:
    """The columns of a token table that a file has. Raises UsageError for types that they cannot have."""
    schema = pq.read_schema(path)
    names = [name for name in schema.names if name in KNOWN]
    twice = [name for name in names if schema.names.count(name) > 1]
    if twice:
        raise UsageError(f"{path}: several columns are called {twice[0]}", "keep one of them")
    whole = is_list_type(schema.field("rollout_logprob").type)
    for name in names:
        kind = schema.field(name).type
        inner = kind.value_type if is_list_type(kind) else kind
        if name in LOGPROBS and not (is_number_type(inner) and is_list_type(kind) is whole):
            expected = "lists of logprobs" if whole else "logprobs"
            raise UsageError(f"{path}: column {name} holds {kind}, expected {expected} in nats (float)")
        # Of one row per sequence every value is looked at.
        if name in IDENTITY and pa.types.is_nested(kind):
            raise UsageError(f"{path}: column {name} holds {kind}, expected a text or a number")
        if not whole and name in TOPS and not (is_list_type(kind) and is_number_type(inner)):
            raise UsageError(f"{path}: column {name} holds {kind}, expected lists of numbers")
        if not whole and name in NUMBERS and not is_number_type(kind):
            raise UsageError(f"{path}: column {name} holds {kind}, expected numbers")
    return names
