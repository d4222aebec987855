"""Completions are found wherever they lie in a trainer's rows, and what a call was for is not guessed."""

import numpy as np
import pytest
from test_recorded_tokens import more, one_sequence, read, table_of
from written_recording import WrittenProcess

PROMPT, COMPLETION = [5, 6, 7], [8, 9, 10]
OLD, REFERENCE = "old", "reference"


def counted(ids, first=0):
    """A stretch's ids, and as its logprobs the negative places of the ids."""
    return ids, [-float(first + place) for place in range(len(ids))]


def scored(folder):
    return list(read(folder).trainer_logprobs_T)


def test_one_row_of_all_sequences_is_cut_at_their_completions(tmp_path):
    process = one_sequence(tmp_path)
    more(process, [4, 6, 7], (11, 12))
    more(process, [3, 6, 7], (11, 12, 13))
    row = [*PROMPT, *COMPLETION, 4, 6, 7, 11, 12, 3, 6, 7, 11, 12, 13, 9, 9, 9, 14]
    process.stretches([(0, 0, *counted(row))])
    assert scored(process.write()) == [-3, -4, -5, -9, -10, -14, -15, -16]


def test_stretches_of_a_row_hold_what_begins_in_them(tmp_path):
    process = one_sequence(tmp_path)
    more(process, [4, 6, 7], (11, 12))
    process.stretches([(0, 40, *counted([7, *COMPLETION, 1])), (2, 17, *counted([4, 6, 7, 11, 12, 0], first=20))])
    folder = process.write()
    # Before the first one lies less of its prompt than it takes to know it.
    batch = read(folder)
    assert list(batch.trainer_logprobs_T[3:]) == [-23, -24] and np.isnan(batch.trainer_logprobs_T[:3]).all()
    said = " ".join(table_of(folder).part.not_seen)
    assert "1 of 2 sequences that the trainer scored match no recorded" in said


@pytest.mark.parametrize("before", [[6, 8], [7, 6], [1, 6, 7]])
def test_the_same_tokens_behind_another_text_are_another_completion(before, tmp_path):
    process = one_sequence(tmp_path)
    process.stretches([(0, 0, *counted([*before, *COMPLETION]))])
    folder = process.write()
    assert any("none of 1 sequences" in one for one in table_of(folder).part.not_seen)


def test_behind_a_masked_prompt_a_completion_begins(tmp_path):
    process = one_sequence(tmp_path)
    process.stretches([(0, 0, *counted([-100, -100, *COMPLETION, -100, 8, 9]))])
    assert scored(process.write()) == [-2, -3, -4]


def test_equal_completions_are_told_apart_by_their_prompts(tmp_path):
    process = WrittenProcess(tmp_path)
    process.sampling(0)
    for prompt in ([1, 6, 7], [2, 6, 7]):
        more(process, prompt, (8,))
    process.stretches([(0, 0, *counted([2, 6, 7, 8, 1, 6, 7, 8]))])
    assert scored(process.write()) == [-7, -3]


def test_two_turns_of_a_conversation_have_a_row_each(tmp_path):
    process = one_sequence(tmp_path)
    later = [*PROMPT, *COMPLETION, 5, 3, 7]
    more(process, later, (12, 13))
    process.stretches([(0, 0, *counted([*later, 12, 13]))])
    assert scored(process.write()) == [-3, -4, -5, -9, -10]


def roles(process):
    """The trainer's logprobs and those of its reference, as the first token has them."""
    batch = read(process.write())
    base = batch.token_columns.get("base_logprob", [np.nan])
    return batch.trainer_logprobs_T[0], base[0]


def row(value):
    return [(0, 0, [*PROMPT, *COMPLETION], [value] * 6)]


def test_the_frameworks_own_methods_say_what_a_call_was_for(tmp_path):
    process = one_sequence(tmp_path)
    process.stretches(row(-3), gradients=False, asked_for=REFERENCE)
    process.stretches(row(-2), gradients=False, asked_for=OLD)
    process.stretches(row(-4))
    assert roles(process) == (-2, -3)


def test_a_method_that_scores_for_two_purposes_says_nothing(tmp_path):
    process = one_sequence(tmp_path)
    for value in (-2, -3):  # a policy, and the same without its adapters
        process.stretches(row(value), gradients=False, asked_for=OLD)
    process.stretches(row(-4))
    assert roles(process)[0] == -4


def test_a_process_that_trains_nothing_has_no_old_policy(tmp_path):
    process = one_sequence(tmp_path)
    process.stretches(row(-4))
    process.write()
    other = WrittenProcess(tmp_path, pid=200, now=process.now)
    # By its class and number it could be the model that the first process trains.
    other.trainer([COMPLETION], [[-2] * 3], gradients=False)
    assert roles(other)[0] == -4


@pytest.mark.parametrize(
    "damage",
    [{"lengths": [5]}, {"lengths": [6, 0]}, {"begins": None}, {"begins": [1 << 61, 3]}, {"rows": []}, {"lengths": []}],
)
def test_stretches_that_do_not_fit_are_left_out(damage, tmp_path):
    process = one_sequence(tmp_path)
    process.stretches(row(-3), **damage)
    process.stretches(row(-4))
    assert scored(process.write()) == [-4] * 3
