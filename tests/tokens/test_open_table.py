import json
import pickle

import pandas as pd
import pytest
from table_files import as_sequences, batches_of_file, rows, write_lines
from test_exports import ACTOR, NEMO, PRIME

from rlaudit.errors import UsageError
from rlaudit.tokens.export import Part
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.token_batch import concatenate


class Trap:
    def __reduce__(self):
        return (open, ("loaded", "w"))


def test_a_pickle_is_refused_with_words_on_how_to_convert_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dump = tmp_path / "dumped_data" / "global_step_1_training_input.pkl"
    dump.parent.mkdir()
    dump.write_bytes(pickle.dumps(Trap()))
    for path in (dump, dump.parent):
        with pytest.raises(UsageError, match="is a pickle") as refused:
            open_tables(path)
        assert "examples/exporters/skyrl.py" in str(refused.value)
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
def test_an_archive_is_refused_and_not_unpacked(tmp_path, ending):
    path = tmp_path / f"part{ending}"
    path.write_bytes(bytes(1024))
    with pytest.raises(UsageError, match="is an archive"):
        open_tables(path)


def test_what_is_no_token_table_is_told_what_there_is(tmp_path):
    path = write_lines(tmp_path / "log.jsonl", [{"step": 1, "loss": 0.5}])
    with pytest.raises(UsageError, match="no token table that rlaudit knows") as refused:
        open_tables(path)
    assert "token_exports/step_N/rank_R.jsonl" in str(refused.value)
    with pytest.raises(UsageError, match="nothing: no such file"):
        open_tables(tmp_path / "nothing")


def test_columns_with_nearly_our_names_are_answered_with_the_option_that_names_them(tmp_path):
    record = {"prompt_id": 1, "sample": 0, "rollout_logprobs": [-0.5], "trainer_logprobs": [-0.5]}
    with pytest.raises(UsageError, match="needs sample_id as well") as refused:
        open_tables(write_lines(tmp_path / "log.jsonl", [record]))
    assert "--columns sample=sample_id" in str(refused.value)


def test_steps_are_read_in_the_order_of_their_numbers(tmp_path):
    for step in (10, 2, 1):
        write_lines(tmp_path / f"token_exports/step_{step}/rank_0.jsonl", [{**PRIME, "export_step": step}])
    (table,) = open_tables(tmp_path)
    assert [file.parent.name for file in table.files] == ["step_1", "step_2", "step_10"]


def test_of_both_streams_of_pipelinerl_the_one_with_groups_is_read(tmp_path):
    write_lines(tmp_path / "streams/actor/0/0/0.jsonl", [ACTOR])
    write_lines(tmp_path / "streams/training_data/0/0/0.jsonl", [{"input_ids": [[9, 8]], "old_logprobs": [[0, -1]]}])
    (table,) = open_tables(tmp_path)
    assert table.export.name == "pipelinerl-actor"
    assert len(table.files) == 1


def test_a_folder_of_several_formats_is_a_question_to_the_user(tmp_path):
    write_lines(tmp_path / "a/rank_0.jsonl", [PRIME])
    write_lines(tmp_path / "b/train_data_step1.jsonl", [NEMO])
    with pytest.raises(UsageError, match="holds several formats: prime-rl token export"):
        open_tables(tmp_path)


def test_other_files_beside_a_dump_are_not_in_the_way(tmp_path):
    write_lines(tmp_path / "run_metadata.jsonl", [{"run_name": "x"}])
    (tmp_path / "config.json").write_text(json.dumps({"a": 1}))
    write_lines(tmp_path / "table.jsonl", as_sequences(rows()))
    (table,) = open_tables(tmp_path)
    assert [file.name for file in table.files] == ["table.jsonl"]


def test_a_run_directory_is_one_comparison_per_arm(tmp_path):
    frame = rows()
    arms = [frame.assign(block="only", arm=arm, rollout_logprob=frame.rollout_logprob - shift)
            for arm, shift in (("reference", 0.0), ("candidate", 1.0))]  # fmt: skip
    pd.concat(arms, ignore_index=True).to_parquet(tmp_path / "tokens.parquet", index=False)
    tables = open_tables(tmp_path)
    assert [table.part.name for table in tables] == ["reference", "candidate"]
    batch = concatenate(batches_of_file(tmp_path, part=Part("candidate", {"block": "only", "arm": "candidate"})))
    assert batch.rollout_logprobs_T.tolist() == pytest.approx((frame.rollout_logprob - 1.0).tolist())
