"""Tables as they should not be: what cannot be used is said with its place, and nothing ends in a stack trace."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import as_sequences, batches_of_file, rows, whole, write_lines

from rlaudit.errors import UsageError
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.token_batch import concatenate

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_table(tmp_path, packed):
    path = write_lines(tmp_path / "s.jsonl", as_sequences(rows()))
    content = BOM + path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert whole(path).sequences == 6


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("token_id", [10**30, 1, 2]),
        ("trainer_logprob", [-(10**400), -1.0, -1.0]),
        ("trainer_logprob", [[-1.0], [-1.0], [-1.0]]),
        ("trainer_logprob", "abc"),
        ("rollout_logprob", {"a": 1}),
        ("prompt_id", [1, 2]),
        ("prompt_id", {"a": 1}),
        ("cached_tokens", "many"),
        ("rollout_top_ids", [["a"], ["b"], ["c"]]),
        ("rollout_top_ids", [1, 2, 3]),
        ("prompt_token_ids", "text"),
    ],
)
def test_a_value_that_cannot_be_used_costs_its_sequence_and_is_named_with_its_line(tmp_path, column, value):
    records = list(as_sequences(rows()))
    records[3][column] = value
    faults = Faults()
    batch = whole(write_lines(tmp_path / "s.jsonl", records), faults)
    assert batch.sequences == 5
    assert [fault.line for fault in faults.shown] == [4]


def test_top_logprobs_of_another_number_than_their_ids_are_named(tmp_path):
    records = list(as_sequences(rows()))
    records[0] |= {"rollout_top_ids": [[1, 2]] * 3, "rollout_top_logprobs": [[-0.1]] * 3}
    faults = Faults()
    assert whole(write_lines(tmp_path / "s.jsonl", records), faults).sequences == 5
    assert "list different numbers of tokens" in str(faults.shown[0])


def test_a_loss_mask_of_texts_is_read_as_numbers(tmp_path):
    records = [{**record, "loss_mask": ["0", "1", "1"][: len(record["token_id"])]} for record in as_sequences(rows())]
    batch = whole(write_lines(tmp_path / "s.jsonl", records[:1]))
    assert batch.counts_T.tolist() == [False, True, True]


def test_brackets_without_end_are_a_fault_of_their_line(tmp_path):
    path = write_lines(tmp_path / "s.jsonl", as_sequences(rows()))
    path.write_bytes(b"[" * 100_000 + b"\n" + path.read_bytes())
    faults = Faults()
    assert whole(path, faults).sequences == 6
    assert faults.shown[0].line == 1


def test_batches_that_are_called_by_a_text_have_one_number_in_every_part_of_a_file(tmp_path):
    frame = rows(prompts=6)
    names = [f"batch {number % 3}" for number in range(12)]
    sequence_T = (frame.position == 0).cumsum() - 1
    frame = frame.assign(batch_id=[names[sequence] for sequence in sequence_T])
    listed = write_lines(tmp_path / "s.jsonl", as_sequences(frame))
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=7)
    by_path = []
    for path in (listed, tmp_path / "t.parquet"):
        batch = concatenate(batches_of_file(path))
        numbers_S = batch.token_columns["batch_id"][batch.offsets[:-1]]
        assert len(set(numbers_S)) == 3
        assert numbers_S.tolist() == numbers_S[:3].tolist() * 4
        by_path.append(numbers_S.tolist())
    assert by_path[0] == by_path[1]


def table(**columns):
    """Rows per token, some columns with another type."""
    found = pa.Table.from_pandas(rows(), preserve_index=False)
    arrays = dict(zip(found.column_names, found.columns, strict=True)) | columns
    arrays = {name: one if isinstance(one, pa.ChunkedArray) else pa.array(one) for name, one in arrays.items()}
    return pa.table(arrays)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"loss_mask": ["1"] * 24}, "column loss_mask holds string, expected numbers"),
        ({"token_id": ["1"] * 24}, "column token_id holds string, expected numbers"),
        ({"position": ["1"] * 24}, "column position holds string, expected numbers"),
        ({"rollout_version": ["v1"] * 24}, "column rollout_version holds string, expected numbers"),
        ({"prompt_id": [[1]] * 24}, "column prompt_id holds list"),
        ({"step": [[None]] * 24}, "column step holds list"),
        ({"batch_id": [[1]] * 24}, "column batch_id holds list"),
        ({"trainer_logprob": [[-1.0]] * 24}, "column trainer_logprob holds list"),
        ({"rollout_top_ids": [1] * 24}, "column rollout_top_ids holds int64, expected lists of numbers"),
    ],
)
def test_columns_of_another_type_are_refused_by_name(tmp_path, columns, said):
    pq.write_table(table(**columns), tmp_path / "t.parquet")
    with pytest.raises(UsageError, match=said):
        batches_of_file(tmp_path / "t.parquet")


def test_two_columns_of_one_name_are_refused(tmp_path):
    found = table()
    names = [*found.column_names, "rollout_logprob"]
    pq.write_table(
        pa.Table.from_arrays([*found.columns, found["rollout_logprob"]], names=names), tmp_path / "t.parquet"
    )
    with pytest.raises(UsageError, match="several columns are called rollout_logprob"):
        batches_of_file(tmp_path / "t.parquet")


def test_a_row_without_a_position_is_named(tmp_path):
    pq.write_table(table(position=[None, *rows().position[1:]]), tmp_path / "t.parquet")
    faults = Faults()
    assert concatenate(batches_of_file(tmp_path / "t.parquet", faults)).sequences == 5
    assert "begins at position -1" in str(faults.shown[0])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([-1.0, -2.0] * 12).dictionary_encode(),
        pa.array(np.array([-1.0, -2.0] * 12, dtype=np.float16)),
        pa.array([-1.0, -2.0] * 12).cast(pa.decimal128(8, 2)),
    ],
)
def test_logprobs_may_be_numbers_of_any_kind(tmp_path, column):
    pq.write_table(table(trainer_logprob=column), tmp_path / "t.parquet")
    assert whole(tmp_path / "t.parquet").trainer_logprobs_T.tolist() == [-1.0, -2.0] * 12


def test_lists_of_one_length_are_lists(tmp_path):
    pairs = pa.array([[-1.0, -2.0]] * 4, pa.list_(pa.float64(), 2))
    columns = {"prompt_id": [0, 0, 1, 1], "sample_id": [0, 1, 0, 1]}
    pq.write_table(pa.table({**columns, "rollout_logprob": pairs, "trainer_logprob": pairs}), tmp_path / "t.parquet")
    assert whole(tmp_path / "t.parquet").lengths_S.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.jsonl", b"", "it is empty"),
        ("t.jsonl", json.dumps([{"prompt_id": 1}]).encode(), "its first lines are not JSON, an object each"),
        ("t.jsonl", b'{"prompt_id": 1, "logprob": [1]}\n', "it holds prompt_id, logprob, and a table of tokens needs"),
        ("t.parquet", b"PAR1" + bytes(100), "it is Parquet without its end"),
    ],
)
def test_a_file_that_is_no_table_is_told_what_it_is_instead(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=said):
        open_tables(tmp_path / name)
