"""Records as the frameworks' own code writes them (source and line in each reader)."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_tables import DUMPS
from table_files import whole, write_lines

from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import all_exports, open_tables

PRIME = {
    "schema_version": 1, "step": 4, "export_step": 4, "rank": 0, "micro_step": 0, "micro_sequence_idx": 0,
    "export_sequence_idx": 7, "env_name": "math", "token_ids": [9, 8, 5, 6, 1], "position_ids": [0, 1, 2, 3, 4],
    "loss_mask": [False, False, True, False, True], "advantages": [0.0, 0.0, 0.5, 0.5, 0.5],
    "rewards": [None, None, 1.0, 1.0, 1.0], "inference_logprobs": [0.0, 0.0, -0.5, 0.0, -0.25],
    "trainer_logprobs": [0.0, -3.0, -0.4, -2.0, -0.3], "entropy": [0.1, 0.2, 0.3, 0.4, 0.5],
}  # fmt: skip
NEMO = {
    "content": ["a question, an answer"], "rewards": [1.0], "input_lengths": [4], "token_ids": [[9, 8, 5, 6, 0, 0]],
    "token_loss_mask": [[0, 0, 1, 1, 0, 0]], "sample_loss_mask": [1.0], "advantages": [[0.2] * 6],
    "generation_logprobs": [[0.0, 0.0, -0.5, -0.25, 0.0, 0.0]], "prev_logprobs": [[0.0, -3.0, -0.4, -0.3, 0.0, 0.0]],
    "idx": 0,
}  # fmt: skip
ACTOR = [
    {
        "text": "q a", "n_predicted": 1, "reward": 1.0, "logprobs": [-0.5, -0.25], "ref_logprobs": [],
        "input_ids": [9, 8, 5, 6], "labels": [-100, -100, 5, 6], "group_id": "g1", "finished": True,
        "metadata": {"model_version": 12, "rollout_index": 3, "step_index": 0},
    },
]  # fmt: skip
TRACE = {
    "step": 3, "sample_idx": 5, "prompt_idx": 1, "prompt_tokens": [9, 8], "response_tokens": [5, 6], "reward": 1.0,
    "advantage": 0.2, "finish_reason": "stop", "dataset": "math", "ground_truth": None, "request_info": None,
    "logprobs": [-0.5, -0.25],
}  # fmt: skip
MILES = {
    "sample_index": 5, "response_length": 3, "total_length": 5, "tokens": [9, 8, 5, 6, 7], "loss_mask": [1, 1, 0],
    "rollout_log_probs": [-0.5, -0.25, 0.0],
}  # fmt: skip
FILES = {
    "miles": ("dashboard_columns/rollout_3.parquet", MILES),
    "prime-rl": ("token_exports/step_4/rank_0.jsonl", PRIME),
    "nemo-rl": ("train_data_step3.jsonl", NEMO),
    "pipelinerl-actor": ("streams/actor/0/0/0.jsonl", ACTOR),
    "open-instruct": ("run_rollouts_000000.jsonl", TRACE),
}


def test_every_dump_of_a_framework_has_a_record_here_and_is_broken_among_the_hostile_tables():
    # A recording is a folder of files, which tests/recorder writes and breaks.
    dumps = {name for name, export in all_exports().items() if export.columns is None and not export.is_folder}
    assert set(FILES) == dumps
    # What a Parquet file can hold that is not as Miles writes it has tests of its own (test_miles.py).
    assert set(DUMPS) == dumps - {"miles"}


def dumped(path, records):
    """As the framework writes it."""
    if path.suffix != ".parquet":
        return write_lines(path, records)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(records), path)
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_dump_is_recognised_by_what_it_holds_and_not_by_its_name(tmp_path, name):
    file, record = FILES[name]
    (table,) = open_tables(dumped((tmp_path / "renamed").with_suffix(Path(file).suffix), [record]))
    assert table.export.name == name


@pytest.mark.parametrize("name", FILES)
def test_a_folder_of_dumps_is_read_as_its_format(tmp_path, name):
    file, record = FILES[name]
    dumped(tmp_path / file, [record])
    (table,) = open_tables(tmp_path)
    assert (table.export.name, len(table.files)) == (name, 1)


@pytest.mark.parametrize("name", FILES)
def test_prompt_and_completion_are_told_apart(tmp_path, name):
    file, record = FILES[name]
    batch = whole(dumped((tmp_path / "f").with_suffix(Path(file).suffix), [record]))
    first = slice(0, batch.lengths_S[0])
    assert batch.token_id_T[first].tolist()[:1] == [5]
    assert batch.prompt_token_ids_S[0].tolist() == [9, 8]
    counted = batch.rollout_logprobs_T[first][batch.counts_T[first]]
    assert counted.tolist() == [-0.5, -0.25]


def test_tokens_that_a_tool_wrote_keep_their_place_and_do_not_count(tmp_path):
    batch = whole(write_lines(tmp_path / "f.jsonl", [PRIME]))
    assert batch.token_id_T.tolist() == [5, 6, 1]
    assert batch.counts_T.tolist() == [True, False, True]
    assert batch.pairs().tokens == 2
    assert batch.token_columns["trainer_entropy"].tolist() == [0.3, 0.4, 0.5]
    assert batch.sequence_columns["reward"].tolist() == [1.0]


def test_padding_of_a_batch_is_cut_off(tmp_path):
    batch = whole(write_lines(tmp_path / "train_data_step3.jsonl", [NEMO]))
    assert batch.tokens == 2
    assert batch.trainer_logprobs_T.tolist() == [-0.4, -0.3]
    assert batch.token_columns["trainer_version"].tolist() == [3, 3]


def test_samples_that_nemo_rl_masks_are_left_out_without_a_fault(tmp_path):
    faults = Faults()
    batch = whole(write_lines(tmp_path / "f.jsonl", [NEMO, {**NEMO, "sample_loss_mask": [0.0]}]), faults)
    assert (batch.sequences, faults.count) == (1, 0)


def test_prompts_without_an_id_are_told_apart_by_their_tokens(tmp_path):
    other = {**PRIME, "token_ids": [9, 7, 5, 6, 1]}
    batch = whole(write_lines(tmp_path / "f.jsonl", [PRIME, other, PRIME]))
    assert batch.prompt_S.tolist() == [0, 1, 0]


def test_a_completion_with_fewer_logprobs_than_tokens_is_named(tmp_path):
    short = [{**ACTOR[0], "logprobs": [-0.5]}]
    faults = Faults()
    assert whole(write_lines(tmp_path / "f.jsonl", [ACTOR, short]), faults).sequences == 1
    assert "f.jsonl:2: line 2 text 3: 1 logprobs for 2 completion tokens" in faults.lines()[0]


def test_lists_of_unequal_length_in_a_dump_are_named(tmp_path):
    faults = Faults()
    broken = {**PRIME, "trainer_logprobs": PRIME["trainer_logprobs"][:-1]}
    assert whole(write_lines(tmp_path / "f.jsonl", [broken, PRIME]), faults).sequences == 1
    assert "5 token ids, 4 trainer logprobs" in faults.lines()[0]


def test_an_older_nemo_rl_without_masks_is_refused_in_its_own_words(tmp_path):
    faults = Faults()
    older = {name: value for name, value in NEMO.items() if name not in {"token_ids", "token_loss_mask"}}
    assert whole(write_lines(tmp_path / "f.jsonl", [NEMO, older]), faults).sequences == 1
    assert "prompt and completion cannot be told apart" in faults.lines()[0]


def test_traces_have_no_trainer_logprobs(tmp_path):
    batch = whole(write_lines(tmp_path / "f.jsonl", [TRACE]))
    assert np.isnan(batch.trainer_logprobs_T).all()
    assert batch.name_of(0) == "prompt step 3 prompt 1, sample 5"


def test_what_the_reference_model_says_is_read_where_there_is_one(tmp_path):
    with_reference = [{**ACTOR[0], "ref_logprobs": [-0.75, -1.5]}]
    batch = whole(write_lines(tmp_path / "0.jsonl", [with_reference]))
    assert batch.token_columns["base_logprob"].tolist() == [-0.75, -1.5]
    without = [{**ACTOR[0], "ref_logprobs": [0.0, 0.0]}]
    assert "base_logprob" not in whole(write_lines(tmp_path / "1.jsonl", [without])).token_columns


def test_every_format_says_what_it_is_and_where_it_is_found():
    for export in all_exports().values():
        assert export.title
        assert export.files


@pytest.mark.parametrize("name", DUMPS)
@pytest.mark.parametrize("odd", [None, 5, {"a": 1}, [[]], 10**400])
def test_a_field_that_is_not_what_the_framework_writes_never_ends_the_reading(tmp_path, name, odd):
    record = FILES[name][1]
    fields = record[0] if isinstance(record, list) else record
    for field in fields:
        changed = {**fields, field: odd}
        path = write_lines(
            tmp_path / f"{field}.jsonl", [record, [changed] if isinstance(record, list) else changed, record]
        )
        faults = Faults()
        batch = whole(path, faults)
        assert batch.sequences + faults.sequences_left_out >= 2
        assert all(fault.line == 2 for fault in faults.shown)
