import numpy as np
import pytest

from rlaudit.tokens.token_batch import TokenBatch, concatenate


def batch(**columns):
    return TokenBatch(
        rollout_logprobs_T=np.array([-1.0, -2.0, -3.0, -4.0, -5.0]),
        trainer_logprobs_T=np.array([-1.0, np.nan, -3.0, -4.0, -5.0]),
        token_id_T=np.arange(5),
        position_T=np.array([0, 1, 0, 1, 2]),
        sequence_T=np.array([0, 0, 1, 1, 1]),
        prompt_S=np.array([4, 2]),
        prompt_names_S=np.array(["a", "b"], dtype=object),
        sample_names_S=np.array([0, 1]),
        **columns,
    )


def test_only_tokens_that_count_and_were_scored_are_compared():
    pairs = batch(token_columns={"loss_mask": np.array([True, True, False, True, True])}).pairs(10)
    assert pairs.rollout_logprobs_T.tolist() == [-1.0, -4.0, -5.0]
    assert pairs.prompt_S.tolist() == [4, 2]
    assert pairs.prompt_count == 10


def test_taken_sequences_bring_all_their_columns():
    whole = batch(
        token_columns={"advantage": np.arange(5.0)},
        sequence_columns={"reward": np.array([1.0, 2.0])},
        rollout_top_ids_TK=np.arange(10).reshape(5, 2),
    )
    taken = whole.take([1])
    assert taken.rollout_logprobs_T.tolist() == [-3.0, -4.0, -5.0]
    assert taken.sequence_T.tolist() == [0, 0, 0]
    assert taken.token_columns["advantage"].tolist() == [2.0, 3.0, 4.0]
    assert taken.sequence_columns["reward"].tolist() == [2.0]
    assert taken.rollout_top_ids_TK.tolist() == [[4, 5], [6, 7], [8, 9]]
    assert taken.name_of(0) == "prompt b, sample 1"


def test_parts_put_together_are_the_whole():
    whole = batch(token_columns={"advantage": np.arange(5.0)})
    again = concatenate([whole.take([0]), whole.take([1])])
    np.testing.assert_array_equal(again.sequence_T, whole.sequence_T)
    np.testing.assert_array_equal(again.token_columns["advantage"], whole.token_columns["advantage"])


def test_top_logprobs_of_other_widths_are_padded_when_put_together():
    narrow = batch(rollout_top_logprobs_TK=np.zeros((5, 1)))
    wide = batch(rollout_top_logprobs_TK=np.zeros((5, 3)))
    both = concatenate([narrow, wide]).rollout_top_logprobs_TK
    assert both.shape == (10, 3)
    assert np.isneginf(both[:5, 1:]).all()


def test_columns_that_only_some_parts_have_are_dropped():
    assert concatenate([batch(token_columns={"advantage": np.zeros(5)}), batch()]).token_columns == {}


@pytest.mark.parametrize("columns", [{"token_columns": {"advantage": np.zeros(4)}}, {"sequence_columns": {"x": [1]}}])
def test_sizes_that_do_not_fit_are_refused_by_name(columns):
    with pytest.raises(ValueError, match=r"advantage has 4|x has 1"):
        batch(**columns)
