"""Columns of an Arrow table as numpy arrays, without a copy where there are no gaps.

pyarrow's own conversion imports pandas, which takes longer than reading most tables; DLPack does not.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.column_range import EXACT
from rlaudit.tokens.logged_sequence import batch_number
from rlaudit.tokens.token_batch import MOST_LISTED, NO_TOKEN, Column

NOT_A_TOKEN = -2


def is_list(table: pa.Table, name: str) -> bool:
    """Return whether a column holds lists: one row per sequence."""
    return is_list_type(table.schema.field(name).type)


def is_list_type(kind: pa.DataType) -> bool:
    """Return whether it is a type of lists, of any length or of a fixed one."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_number_type(kind: pa.DataType) -> bool:
    """Return whether it is a type of numbers, truth values, or nothing at all; plain or behind a dictionary."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    return any(is_a(kind) for is_a in kinds)


def single_array(table: pa.Table, name: str) -> pa.Array:
    """Return a column in one piece."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def filled(column: pa.Array, value: float) -> pa.Array:
    """Return the column with `value` for nulls. pyarrow imports pandas for a scalar: only if it is needed."""
    return pc.fill_null(column, value) if column.null_count else column


def plain(column: pa.Array) -> Column:
    """Return numbers without a gap as an array."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        return plain(pc.cast(column, pa.uint8())).view(np.bool_)
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = pc.cast(column, pa.float64())
    values: Column = np.from_dlpack(column)
    return values


def floats(table: pa.Table, name: str) -> Floats:
    """Return a column of numbers; NaN for null."""
    column = single_array(table, name)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if column.null_count:
        # A whole number that float64 rounds is out of every column's range, and judged there (`column_range.py`).
        column = filled(pc.cast(column, pa.float64(), safe=False), float("nan"))
    return plain(column).astype(np.float64, copy=False)


def positions(table: pa.Table) -> Integers:
    """Return the positions; -1 for null."""
    column = pc.cast(single_array(table, "position"), pa.int64(), safe=False)
    return plain(filled(column, -1))


def token_ids(table: pa.Table) -> Integers:
    """Return the token ids; NO_TOKEN for null, NOT_A_TOKEN for a fraction."""
    column = single_array(table, "token_id")
    if pa.types.is_integer(column.type):
        return plain(filled(column, NO_TOKEN)).astype(np.int64, copy=False)
    # A frame with gaps has its whole numbers as floats.
    numbers = floats(table, "token_id")
    whole = np.where(np.abs(numbers) <= EXACT, numbers, np.nan)
    ids = np.where(np.isnan(whole), NO_TOKEN, whole).astype(np.int64)
    return np.where(np.isnan(numbers) | (ids == numbers), ids, NOT_A_TOKEN)


def token_column(table: pa.Table, name: str) -> Column:
    """Return one of TOKEN_COLUMNS, or the step; a text that names a batch or step becomes a number."""
    column = single_array(table, name)
    if name == "loss_mask":
        # A token without a mask is not counted.
        if pa.types.is_boolean(column.type):
            return plain(filled(column, False))
        mask_T = floats(table, name)
        return np.where(np.isnan(mask_T), 0.0, mask_T)
    if not is_number_type(column.type):
        return _text_numbers(column)
    return floats(table, name)


def _text_numbers(column: pa.Array) -> Column:
    """Return numbers of texts that are the same in every part of a file, which the codes of a dictionary are not."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    numbers = [batch_number(str(name)) for name in column.dictionary.to_pylist()]
    return np.array([*numbers, np.nan])[plain(filled(column.indices, -1))]


def codes(table: pa.Table, name: str) -> Column:
    """Return numbers that differ where the column's values differ."""
    column = single_array(table, name)
    if pa.types.is_integer(column.type) and not column.null_count:
        return plain(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return plain(filled(column.indices, -1))


def taken(table: pa.Table, name: str, rows: Integers) -> Column:
    """Return the column's values at these rows."""
    column = single_array(table, name)
    if pa.types.is_integer(column.type) and not column.null_count:
        return plain(column)[rows]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # A missing name is the last entry, where an index of -1 points.
    names = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    return names[plain(filled(column.indices, -1))[rows]]


def list_lengths(column: pa.ChunkedArray) -> Integers:
    """Return how many entries each list has; 0 if there is none."""
    return plain(filled(pc.list_value_length(column.combine_chunks()), 0)).astype(np.int64)


def padded_lists(column: pa.ChunkedArray, missing: float) -> Column:
    """Return ragged lists as (T, K), padded with `missing`; of more than MOST_LISTED entries the first ones."""
    lists = column.combine_chunks()
    if list_lengths(column).max(initial=0) > MOST_LISTED:
        lists = pc.list_slice(lists, 0, MOST_LISTED)
    entries = lists.flatten()
    flat = np.full(len(entries), missing) if pa.types.is_null(entries.type) else plain(filled(entries, missing))
    lengths = np.minimum(list_lengths(column), MOST_LISTED)
    width = int(lengths.max(initial=0))
    padded = np.full((len(lengths), width), missing, dtype=np.result_type(flat.dtype, type(missing)))
    padded[np.arange(width) < lengths[:, None]] = flat
    return padded
