import numpy as np
import pandas as pd
import pytest
from table_files import as_sequences, batches_of_file, rows, whole

from rlaudit.errors import NotFinished, UsageError
from rlaudit.tokens import parquet
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.parquet import MEASURED, parquet_batches, parquet_sample
from rlaudit.tokens.prompt_numbers import PromptNumbers


def written(path, frame, row_group_size=None):
    frame.to_parquet(path, index=False, row_group_size=row_group_size)
    return path


def test_every_column_arrives_with_its_token(tmp_path):
    frame = rows(loss_mask=[True, False, True] * 8, advantage=0.5, rollout_version=3, batch_id=7)
    batch = whole(written(tmp_path / "t.parquet", frame))
    np.testing.assert_array_equal(batch.rollout_logprobs_T, frame.rollout_logprob)
    np.testing.assert_array_equal(batch.trainer_logprobs_T, frame.trainer_logprob)
    np.testing.assert_array_equal(batch.token_id_T, frame.token_id)
    np.testing.assert_array_equal(batch.position_T, frame.position)
    np.testing.assert_array_equal(batch.token_columns["loss_mask"], frame.loss_mask)
    np.testing.assert_array_equal(batch.token_columns["advantage"], frame.advantage)
    assert batch.prompt_names_S.tolist() == [0, 0, 1, 1, 2, 2]
    assert batch.sample_names_S.tolist() == [0, 1] * 3
    assert batch.lengths_S.tolist() == [3, 4, 5] * 2


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 100])
def test_no_sequence_is_split_however_rows_are_grouped(tmp_path, monkeypatch, size):
    monkeypatch.setattr(parquet, "ROWS", size)
    frame = rows()
    batches = batches_of_file(written(tmp_path / "t.parquet", frame, row_group_size=size))
    lengths = [length for batch in batches for length in batch.lengths_S.tolist()]
    assert lengths == [3, 4, 5] * 2
    together = np.concatenate([batch.rollout_logprobs_T for batch in batches])
    np.testing.assert_array_equal(together, frame.rollout_logprob)
    assert [name for batch in batches for name in batch.prompt_S.tolist()] == [0, 0, 1, 1, 2, 2]


def test_prompts_and_samples_may_be_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS", 5)
    frame = rows()
    texts = frame.assign(prompt_id="p" + frame.prompt_id.astype(str), sample_id="s" + frame.sample_id.astype(str))
    batches = batches_of_file(written(tmp_path / "t.parquet", texts, row_group_size=5))
    names = [name for batch in batches for name in batch.prompt_names_S.tolist()]
    assert names == ["p0", "p0", "p1", "p1", "p2", "p2"]
    assert [number for batch in batches for number in batch.prompt_S.tolist()] == [0, 0, 1, 1, 2, 2]


def test_a_position_that_starts_again_is_another_sequence_of_the_same_sample(tmp_path):
    frame = pd.concat([rows(prompts=1, samples=1)] * 2, ignore_index=True)
    assert whole(written(tmp_path / "t.parquet", frame)).lengths_S.tolist() == [3, 3]


def test_a_missing_token_is_named_and_its_sequence_left_out(tmp_path):
    frame = rows().drop(index=4)  # position 1 of prompt 0, sample 1
    faults = Faults()
    batch = whole(written(tmp_path / "t.parquet", frame), faults)
    assert batch.sequences == 5
    assert faults.sequences_left_out == 1
    assert "prompt 0, sample 1: position 2 follows position 0" in faults.lines()[0]


def test_an_unsorted_table_is_refused_sequence_by_sequence(tmp_path):
    frame = rows(prompts=1, samples=1).iloc[[1, 2, 0]]
    faults = Faults()
    batch = whole(written(tmp_path / "t.parquet", frame), faults)
    assert batch.lengths_S.tolist() == [1]
    assert "begins at position 1" in faults.lines()[0]


def test_only_the_columns_asked_for_are_decoded(tmp_path):
    frame = rows(advantage=1.0, trainer_entropy=0.3)
    for batch in batches_of_file(written(tmp_path / "t.parquet", frame), columns=MEASURED):
        assert set(batch.token_columns) == {"trainer_entropy"}
    for batch in batches_of_file(written(tmp_path / "t.parquet", frame), columns=("position",)):
        assert set(batch.token_columns) == set()
        assert set(batch.token_id_T.tolist()) == {-1}


def test_trainer_logprobs_may_be_missing_altogether(tmp_path):
    batch = whole(written(tmp_path / "t.parquet", rows().drop(columns="trainer_logprob")))
    assert np.isnan(batch.trainer_logprobs_T).all()
    batch = whole(written(tmp_path / "n.parquet", rows().assign(trainer_logprob=None)))
    assert np.isnan(batch.trainer_logprobs_T).all()


def test_top_logprobs_are_padded_to_one_width(tmp_path):
    frame = rows(prompts=1, samples=1)
    frame["rollout_top_ids"] = [[1, 2], [3], [4, 5, 6]]
    frame["rollout_top_logprobs"] = [[-0.1, -2.0], [-0.2], [-0.3, -1.0, -3.0]]
    batch = whole(written(tmp_path / "t.parquet", frame))
    assert batch.rollout_top_ids_TK.tolist() == [[1, 2, -1], [3, -1, -1], [4, 5, 6]]
    assert batch.rollout_top_logprobs_TK[1].tolist() == [-0.2, -np.inf, -np.inf]


def test_top_lists_of_a_token_that_does_not_count_may_differ_in_length(tmp_path):
    frame = rows(prompts=1, samples=1).assign(loss_mask=[False, True, True])
    frame["rollout_top_ids"] = [[1, 2, 3, 4], [3, 5], [4, 5]]
    frame["rollout_top_logprobs"] = [[-0.1, -2.0], [-0.2, -3.0], [-0.3, -1.0]]
    batch = whole(written(tmp_path / "t.parquet", frame))
    assert batch.rollout_top_ids_TK.shape == batch.rollout_top_logprobs_TK.shape == (3, 4)
    assert np.isnan(batch.rollout_top_logprobs_TK[0]).all()


def test_one_row_per_sequence_reads_like_one_row_per_token(tmp_path):
    frame = rows()
    by_token = whole(written(tmp_path / "t.parquet", frame))
    by_sequence = whole(written(tmp_path / "s.parquet", pd.DataFrame(list(as_sequences(frame)))))
    np.testing.assert_array_equal(by_token.trainer_logprobs_T, by_sequence.trainer_logprobs_T)
    np.testing.assert_array_equal(by_token.sequence_T, by_sequence.sequence_T)


def test_a_sample_holds_whole_sequences_with_every_column(tmp_path):
    frame = rows(prompts=40, advantage=2.0)
    path = written(tmp_path / "t.parquet", frame, row_group_size=50)
    parts = list(parquet_sample(path, 60, PromptNumbers()))
    assert sum(part.tokens for part in parts) >= 30
    wanted = {(prompt, sample): len(part) for (prompt, sample), part in frame.groupby(["prompt_id", "sample_id"])}
    for part in parts:
        assert set(part.token_columns) == {"advantage"}
        for sequence, length in enumerate(part.lengths_S):
            assert wanted[part.prompt_names_S[sequence], part.sample_names_S[sequence]] == length


def test_a_sample_of_short_sequences_holds_as_many_tokens_as_one_of_long_ones(tmp_path):
    lists = {name: [[-0.5, -1.0]] * 400 for name in ("rollout_logprob", "trainer_logprob")}
    path = written(tmp_path / "t.parquet", pd.DataFrame({"prompt_id": range(400), "sample_id": 0, **lists}))
    assert sum(part.tokens for part in parquet_sample(path, 700, PromptNumbers())) == 700


def test_a_file_that_ends_in_the_middle_is_not_finished(tmp_path):
    path = written(tmp_path / "t.parquet", rows(prompts=4000), row_group_size=1000)
    whole_bytes = path.read_bytes()
    # The footer stands at the end; what is lost is in the middle.
    path.write_bytes(whole_bytes[:2000] + bytes(3000) + whole_bytes[5000:])
    with pytest.raises(NotFinished, match=r"t\.parquet cannot be read to its end"):
        list(parquet_batches(path, Faults(), PromptNumbers()))


def test_logprobs_that_are_text_are_refused(tmp_path):
    path = written(tmp_path / "t.parquet", rows().assign(rollout_logprob="-0.5"))
    with pytest.raises(UsageError, match="column rollout_logprob holds"):
        list(parquet_batches(path, Faults(), PromptNumbers()))


@pytest.mark.parametrize("largest", [2**63 - 1, -(2**63)])
def test_a_whole_number_beyond_float64_is_one_like_any_other(tmp_path, largest):
    frame = rows(prompts=1, samples=1).assign(base_logprob=pd.array([largest, None, 0], dtype="Int64"))
    batch = whole(written(tmp_path / "t.parquet", frame))
    assert batch.token_columns["base_logprob"][0] == float(largest)
