from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlaudit.tokens.column_range import RANGES
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.parquet import KNOWN
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import MOST_LISTED, TokenBatch

HERE = Path("t.jsonl")


def batch(rollout, trainer, mask=None):
    tokens = len(rollout)
    return TokenBatch(
        rollout_logprobs_T=np.array(rollout),
        trainer_logprobs_T=np.array(trainer),
        token_id_T=np.arange(tokens),
        position_T=np.arange(tokens) % 2,
        sequence_T=np.arange(tokens) // 2,
        prompt_S=np.zeros(tokens // 2, dtype=np.int64),
        prompt_names_S=np.zeros(tokens // 2, dtype=np.int64),
        sample_names_S=np.arange(tokens // 2),
        token_columns={} if mask is None else {"loss_mask": np.array(mask)},
        sequence_columns={"line": np.arange(tokens // 2) + 11.0},
    )


FINE = [-1.0, -1.0, -2.0, -2.0]


@pytest.mark.parametrize(
    ("rollout", "trainer", "said"),
    [
        ([-1.0, np.nan, -2.0, -2.0], FINE, "rollout_logprob is NaN or missing, expected a logprob of every token"),
        ([-1.0, 0.5, -2.0, -2.0], FINE, "rollout_logprob is 0.5, expected a logprob in nats"),
        ([-1.0, -np.inf, -2.0, -2.0], FINE, "rollout_logprob is -inf"),
        ([-1.0, -1e154, -2.0, -2.0], FINE, "rollout_logprob is -1e+154"),
        (FINE, [-1.0, 2e-6, -2.0, -2.0], "trainer_logprob is 2e-06"),
        (FINE, [-1.0, np.nan, -2.0, -2.0], "trainer_logprob is NaN or missing"),
        (FINE, [-1.0, -np.inf, -2.0, -2.0], "trainer_logprob is -inf"),
    ],
)
def test_a_broken_sequence_is_named_with_its_line_and_left_out(rollout, trainer, said):
    faults = Faults()
    left = sound(batch(rollout, trainer), HERE, faults)
    assert left.sample_names_S.tolist() == [1]
    (line,) = faults.lines()
    assert line.startswith(f"t.jsonl:11: prompt 0, sample 0: {said}")
    assert line.endswith(" at position 1; the sequence is left out")
    assert (faults.sequences_left_out, faults.tokens_left_out) == (1, 2)


def test_a_sound_batch_is_the_same_object():
    whole = batch(FINE, FINE)
    assert sound(whole, HERE, Faults()) is whole


def test_what_the_loss_does_not_count_may_hold_anything():
    whole = batch([np.nan, -1.0, -2.0, 3.0], [np.nan, -1.0, -2.0, np.inf], mask=[False, True, True, False])
    faults = Faults()
    assert sound(whole, HERE, faults).sequences == 2
    assert not faults.count


def test_a_sequence_without_any_trainer_logprob_is_kept_and_without_a_score():
    faults = Faults()
    assert sound(batch(FINE, [np.nan, np.nan, -2.0, -2.0]), HERE, faults).sequences == 2
    assert not faults.count


def test_a_token_outside_the_filters_that_a_trainer_replays_is_no_fault():
    faults = Faults()
    assert sound(batch(FINE, [-1.0, -np.inf, -2.0, -2.0]), HERE, faults, trainer_excludes=True).sequences == 2
    assert not faults.count


def test_faults_of_a_kind_are_one_line_with_the_first_place_and_their_number():
    faults = Faults()
    for line in range(1, 200_001):
        faults.add(Fault(HERE, FaultKind.NOT_JSON, "broken", line), sequences=1)
    faults.add(Fault(HERE, FaultKind.GAP, "a gap", 5), sequences=1)
    assert faults.lines() == ["t.jsonl:1: broken (and 199999 more like it)", "t.jsonl:5: a gap"]
    assert (faults.count, faults.sequences_left_out) == (200_001, 200_001)


def many(**columns):
    tokens = 4000
    whole = batch([-1.0] * tokens, [-1.0] * tokens)
    own = {name: np.broadcast_to(values, tokens).copy() for name, values in columns.items()}
    return replace(whole, token_columns=own)


IMPOSSIBLE = {
    "trainer_entropy": (-9999.0, 9999.0, np.inf, -np.inf, -0.2, 14.0),
    "old_logprob": (0.1, np.inf, -np.inf, -1e300),
    "base_logprob": (0.1, -1e6),
    "loss_mask": (2.0, -1.0, 0.5, np.inf),
    "rollout_version": (1.5, -2.0, np.inf, 1e300),
    "trainer_version": (0.25, -np.inf),
    "cached_tokens": (-1.0, 3.5, np.inf),
    "stale_tokens": (-1.0, 0.5),
    "batch_id": (0.5, np.inf),
    "advantage": (np.inf, -1e200),
}


@pytest.mark.parametrize(("column", "value"), [(name, one) for name, values in IMPOSSIBLE.items() for one in values])
def test_a_value_that_its_column_cannot_have_costs_its_sequence_and_nothing_else(column, value):
    whole = many(**{column: RANGES[column].high if RANGES[column].high < 1 else 1.0})
    whole.token_columns[column][123] = value
    faults = Faults()
    left = sound(whole, HERE, faults)
    assert left.sequences == whole.sequences - 1
    (fault,) = faults.shown
    assert (fault.kind, fault.column, fault.line) == (FaultKind.IMPOSSIBLE, column, 11 + 123 // 2)
    assert f"{column} is {value:.9g}, expected {RANGES[column].expected}" in fault.message


@pytest.mark.parametrize("column", [name for name in IMPOSSIBLE if name != "loss_mask"])
def test_a_missing_value_and_the_ends_of_a_range_are_possible(column):
    for value in (np.nan, RANGES[column].low, RANGES[column].high):
        whole = many(**{column: value})
        assert sound(whole, HERE, Faults()) is whole


def test_every_column_of_a_token_table_has_a_range():
    assert set(RANGES) == {*KNOWN, "reward", "step"} - {"prompt_id", "sample_id", "position"}


@pytest.mark.parametrize(
    ("ids", "logprobs", "said"),
    [
        ([1, -1], [-1.0, -2.0], "rollout_top_logprobs has a logprob of no token"),
        ([1, 2], [np.nan, -2.0], "rollout_top_logprobs has a NaN or another length"),
        ([1, 2], [0.5, -2.0], "rollout_top_logprobs is 0.5"),
        ([1, -7], [-1.0, -np.inf], "rollout_top_ids is -7"),
    ],
)
def test_top_lists_are_possible_and_as_long_as_their_ids(ids, logprobs, said):
    whole = many()
    ids_TK = np.tile([3, 4], (whole.tokens, 1))
    logprobs_TK = np.tile([-1.0, -np.inf], (whole.tokens, 1))
    ids_TK[0], logprobs_TK[0] = ids, logprobs
    faults = Faults()
    whole = replace(whole, rollout_top_ids_TK=ids_TK, rollout_top_logprobs_TK=logprobs_TK)
    assert sound(whole, HERE, faults).sequences == whole.sequences - 1
    assert said in faults.lines()[0]


def test_the_best_token_of_a_list_comes_first_in_whatever_order_it_was_logged():
    whole = many()
    ids_TK, logprobs_TK = np.tile([3, 4, 5], (whole.tokens, 1)), np.tile([-2.0, -1.0, -np.inf], (whole.tokens, 1))
    read = sound(replace(whole, rollout_top_ids_TK=ids_TK, rollout_top_logprobs_TK=logprobs_TK), HERE, Faults())
    assert read.sequences == whole.sequences
    assert read.rollout_top_ids_TK[0].tolist() == [4, 3, 5]
    assert read.rollout_top_logprobs_TK[0].tolist() == [-1.0, -2.0, -np.inf]


def test_a_list_that_is_longer_than_what_is_read_has_to_be_in_order():
    whole = many()
    ids_TK = np.tile(np.arange(MOST_LISTED), (whole.tokens, 1))
    logprobs_TK = np.tile(-np.arange(1.0, MOST_LISTED + 1.0), (whole.tokens, 1))
    logprobs_TK[0, -1] = -0.5
    faults = Faults()
    whole = replace(whole, rollout_top_ids_TK=ids_TK, rollout_top_logprobs_TK=logprobs_TK)
    assert sound(whole, HERE, faults).sequences == whole.sequences - 1
    assert "rises within its first 64 entries" in faults.shown[0].message


@pytest.mark.parametrize(("replays", "kept"), [(True, 2), (False, 1)])
def test_an_old_logprob_outside_the_filters_is_one_like_the_trainers(replays, kept):
    whole = replace(batch(FINE, FINE), token_columns={"old_logprob": np.array([-1.0, -np.inf, -2.0, -2.0])})
    assert sound(whole, HERE, Faults(), trainer_excludes=replays).sequences == kept


@pytest.mark.parametrize("number", [-9999.0, -1e9, float(np.finfo(np.float32).min)])
def test_a_number_that_stands_for_minus_infinity_in_a_top_list_is_read_as_that(number):
    whole, faults = batch(FINE, FINE), Faults()
    ids_TK, logprobs_TK = np.tile([7, 8, 9], (4, 1)), np.tile([-0.1, number, number], (4, 1))
    tops = {f"{side}_top_ids_TK": ids_TK for side in ("rollout", "trainer")}
    tops |= {f"{side}_top_logprobs_TK": logprobs_TK for side in ("rollout", "trainer")}
    read = sound(replace(whole, **tops), HERE, faults)
    assert not faults.count
    for side in (read.rollout_top_logprobs_TK, read.trainer_top_logprobs_TK):
        assert side.tolist() == [[-0.1, -np.inf, -np.inf]] * 4
