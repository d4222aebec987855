from dataclasses import replace

import numpy as np
import pytest
from table_files import as_sequences, rows, whole, write_lines

from rlaudit.tokens.complete import complete


@pytest.fixture
def batch(tmp_path):
    return whole(write_lines(tmp_path / "t.jsonl", as_sequences(rows(prompts=50, trainer_entropy=1.0, reward=0.5))))


def with_gaps(batch, share):
    entropy_T = batch.token_columns["trainer_entropy"].copy()
    entropy_T[batch.offsets[: int(share * batch.sequences)]] = np.nan
    return replace(batch, token_columns={**batch.token_columns, "trainer_entropy": entropy_T})


def test_a_few_sequences_with_a_gap_are_left_out_and_the_column_stays(batch):
    found, said = complete(with_gaps(batch, 0.05))
    assert found.sequences == 95
    assert not np.isnan(found.token_columns["trainer_entropy"]).any()
    assert said == ("no cause is looked for in 5 of 100 sequences: a gap in trainer_entropy",)


def test_of_many_gaps_the_column_is_left_out_and_the_sequences_stay(batch):
    found, said = complete(with_gaps(batch, 0.06))
    assert found.sequences == 100
    assert "trainer_entropy" not in found.token_columns
    assert said == ("column trainer_entropy is not used: 6 of 100 sequences have a gap in it",)


def test_sequences_that_other_arrays_count_on_stay(batch):
    found, said = complete(with_gaps(batch, 0.01), sequences_may_go=False)
    assert found.sequences == 100
    assert "trainer_entropy" not in found.token_columns
    assert len(said) == 1


def test_a_gap_where_the_loss_does_not_count_is_none(batch):
    gaps = with_gaps(batch, 1.0)
    mask_T = ~np.isnan(gaps.token_columns["trainer_entropy"])
    masked = replace(gaps, token_columns={**gaps.token_columns, "loss_mask": mask_T})
    found, said = complete(masked)
    assert (found.sequences, said) == (100, ())
    assert "trainer_entropy" in found.token_columns


@pytest.mark.parametrize("width", [0, 3])
def test_top_lists_without_an_entry_are_no_column(batch, width):
    tops = replace(batch, rollout_top_logprobs_TK=np.full((batch.tokens, width), -np.inf))
    found, said = complete(tops)
    assert found.rollout_top_logprobs_TK is None
    assert said == ("column rollout_top_logprobs is not used: no list in it has an entry",)


def test_a_list_of_one_is_widened_to_the_two_that_are_compared(batch):
    tops = replace(batch, rollout_top_logprobs_TK=np.full((batch.tokens, 1), -0.5))
    found, said = complete(tops)
    assert found.rollout_top_logprobs_TK.shape == (batch.tokens, 2)
    assert np.isneginf(found.rollout_top_logprobs_TK[:, 1]).all()
    assert not said
