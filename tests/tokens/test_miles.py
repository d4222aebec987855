"""What Miles' token columns may hold besides the usual row, and what is said of it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import whole

from rlaudit.errors import NotFinished
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables

SCHEMA = pa.schema(
    [
        ("sample_index", pa.int32()),
        ("response_length", pa.int32()),
        ("total_length", pa.int32()),
        ("tokens", pa.list_(pa.int32())),
        ("loss_mask", pa.list_(pa.int8())),
        ("rollout_log_probs", pa.list_(pa.float32())),
    ]
)


def row(index=0, **changed):
    usual = {
        "sample_index": index, "response_length": 3, "total_length": 5, "tokens": [9, 8, 5, 6, 7], "loss_mask": None,
        "rollout_log_probs": [-0.5, -0.25, -0.125],
    }  # fmt: skip
    return {**usual, **changed}


def written(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, row_group_size=8)
    return path


def test_samples_of_one_prompt_are_one_prompt_and_the_rollout_is_the_step(tmp_path):
    rows = [row(0), row(1), row(2, tokens=[1, 2, 5, 6, 7])]
    batch = whole(written(tmp_path / "dashboard_columns" / "rollout_12.parquet", rows))
    assert batch.prompt_S.tolist() == [0, 0, 1]
    assert batch.sequence_columns["step"].tolist() == [12.0] * 3
    assert batch.sample_names_S.tolist() == [f"rollout 12 sample {index}" for index in range(3)]
    assert batch.counts_T.all()


def test_a_sample_that_was_aborted_or_has_no_logprobs_is_no_fault(tmp_path):
    rows = [row(0), row(1, response_length=0, total_length=2, tokens=[9, 8], rollout_log_probs=[]),
            row(2, rollout_log_probs=None)]  # fmt: skip
    faults = Faults()
    assert whole(written(tmp_path / "rollout_0.parquet", rows), faults).sequences == 1
    assert not faults.count


@pytest.mark.parametrize(
    "changed",
    [
        {"rollout_log_probs": [-0.5]},
        {"tokens": [9, 8, 5]},
        {"tokens": None},
        {"loss_mask": [1, 1]},
        {"loss_mask": [1, 7, 1]},
        {"total_length": None},
        {"rollout_log_probs": [-0.5, None, -0.25]},
    ],
)
def test_a_row_that_is_not_as_miles_writes_it_is_named_and_the_others_are_read(tmp_path, changed):
    faults = Faults()
    batch = whole(written(tmp_path / "rollout_0.parquet", [row(0), row(1, **changed), row(2)]), faults)
    missing = changed == {"rollout_log_probs": [-0.5, None, -0.25]}  # named once sequences are looked at
    assert batch.sequences == (3 if missing else 2)
    assert [fault.line for fault in faults.shown] == ([] if missing else [2])


def test_evaluations_of_a_folder_are_left_aside_and_read_where_they_are_given(tmp_path):
    folder = tmp_path / "dashboard_columns"
    for name in ("rollout_0", "rollout_1", "rollout_eval_1"):
        written(folder / f"{name}.parquet", [row()])
    (table,) = open_tables(folder)
    assert [file.name for file in table.files] == ["rollout_0.parquet", "rollout_1.parquet"]
    assert whole(folder / "rollout_eval_1.parquet").sequences == 1


def test_a_file_cut_off_ends_it(tmp_path):
    path = written(tmp_path / "rollout_0.parquet", [row(index) for index in range(64)])
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(360)
    path.write_bytes(data)
    with pytest.raises(NotFinished, match="cannot be read"):
        whole(path)
