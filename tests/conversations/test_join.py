"""Which turn a prompt continues, and what it has otherwise."""

from collections import Counter

import numpy as np
import pytest
from conversation_logs import ASSISTANT, BREAK, CHANGES, END, USER, conversations

from rlaudit.tokens.conversations.history import Change
from rlaudit.tokens.conversations.join import joined
from rlaudit.tokens.conversations.turn import Turn

KINDS = {
    "encoded again": Change.ENCODED_AGAIN,
    "reasoning left out": Change.BEGINNING_LEFT_OUT,
    "end token lost": Change.END_LOST,
    "end token doubled": Change.DOUBLED,
    "answer cut": Change.ANSWER_CUT,
    "system prompt changed": Change.NOT_AN_ANSWER,
}


def turns_of(records):
    return [
        Turn(
            (record["prompt_id"], str(record["sample_id"]), ""),
            np.array(record["prompt_token_ids"], dtype=np.int32),
            np.array(record["token_id"], dtype=np.int32),
            trained=True,
        )
        for record in records
    ]


def turn(prompt, answer, name="0", trained=True):
    return Turn((name, "0", ""), np.array(prompt, dtype=np.int32), np.array(answer, dtype=np.int32), trained)


def changes(found):
    return Counter(difference.change for turn in found.changed for difference in turn.differences)


def words(first, count):
    return list(range(first, first + count))


QUESTION = [*words(100, 30), END, BREAK, ASSISTANT, BREAK]
ANSWER = [*words(200, 20), END]
RESULT = [BREAK, USER, BREAK, *words(300, 10), END, BREAK, ASSISTANT, BREAK]


@pytest.mark.parametrize("change", sorted(CHANGES))
@pytest.mark.parametrize("dose", [0.02, 0.3, 1.0])
def test_each_changed_turn_is_counted_by_its_kind(change, dose):
    made = conversations(change, dose=dose, conversations=30, seed=3)
    found = joined(turns_of(made.records))
    assert (len(found.first), len(found.joined), len(found.changed)) == (30, made.later, made.changed)
    assert changes(found) == Counter({KINDS[change]: made.changed} if made.changed else {})
    assert found.unjoined == 0


@pytest.mark.parametrize("samples", [1, 4])
def test_a_history_that_is_passed_on_as_it_was_is_silent(samples):
    made = conversations(dose=0.0, conversations=10, samples=samples, seed=1)
    found = joined(turns_of(made.records))
    assert (len(found.joined), len(found.changed), found.unjoined) == (made.later, 0, 0)


def test_samples_that_begin_with_one_prompt_are_kept_apart():
    made = conversations("encoded again", dose=0.5, conversations=10, samples=4, seed=2)
    found = joined(turns_of(made.records))
    assert (len(found.joined), len(found.changed)) == (made.later, made.changed)
    assert len(found.first) == 40


def test_the_order_of_a_log_is_no_matter():
    made = conversations("reasoning left out", dose=0.5, conversations=10, seed=5)
    there, back = joined(turns_of(made.records)), joined(turns_of(made.records[::-1]))
    assert {turn.turn.name for turn in there.changed} == {turn.turn.name for turn in back.changed}


def test_a_shared_system_prompt_joins_nothing():
    system = words(500, 200)
    found = joined([turn([*system, *words(1000 * n, 30), *QUESTION[-4:]], words(700 + n, 9)) for n in range(1, 30)])
    assert (found.joined, found.first, found.unjoined) == ((), (), 0)


def test_answers_that_quote_what_every_prompt_says_join_nothing():
    rule = words(500, 30)
    prompts = [[*words(1000 * n, 30), *rule, *QUESTION[-4:]] for n in range(1, 20)]
    found = joined([turn(prompt, [*rule, *words(700, 5), END]) for prompt in prompts])
    assert (found.joined, found.unjoined) == ((), 0)


def test_a_prompt_that_asks_a_judge_about_an_answer_is_no_turn():
    judge = [*words(600, 40), *QUESTION[:30], *words(650, 5), *ANSWER[:-1], *words(660, 20), *QUESTION[-4:]]
    found = joined([turn(QUESTION, ANSWER), turn(judge, words(900, 5))])
    assert (found.joined, found.changed) == ((), ())


def test_a_question_that_is_put_again_is_no_turn():
    found = joined([turn(QUESTION, ANSWER), turn(QUESTION, words(800, 9))])
    assert (found.joined, found.unjoined) == ((), 0)


def test_an_answer_that_was_never_recorded_is_counted_and_joined_to_nothing():
    other = [*QUESTION, *words(800, 40), END, *RESULT]
    found = joined([turn(QUESTION, ANSWER), turn(other, words(900, 9))])
    assert (found.joined, found.unjoined) == ((), 1)


def test_a_lost_sibling_with_the_same_first_words_is_not_another_one_encoded_again():
    lost = [*QUESTION, *ANSWER[:8], *words(800, 30), END, *RESULT]
    found = joined([turn(QUESTION, ANSWER), turn(lost, words(900, 9))])
    assert (found.changed, found.unjoined) == ((), 1)


def test_an_answer_behind_a_later_prompt_that_was_never_recorded_is_counted():
    second = [*QUESTION, *ANSWER, *RESULT]
    other = [*second, *words(800, 40), END, *RESULT]
    found = joined([turn(QUESTION, ANSWER), turn(second, words(900, 9)), turn(other, [5])])
    assert (len(found.joined), found.unjoined) == (2, 1)


def test_two_turns_with_the_same_tokens_are_one_answer():
    later = turn([*QUESTION, *ANSWER, *RESULT], words(900, 9), "1")
    found = joined([turn(QUESTION, ANSWER), turn(QUESTION, ANSWER), later])
    assert (len(found.joined), len(found.changed)) == (1, 0)


def test_an_answer_of_one_token_is_continued():
    found = joined([turn(QUESTION, [77]), turn([*QUESTION, 77, *RESULT], words(900, 9))])
    assert (len(found.joined), len(found.changed)) == (1, 0)


def test_a_cut_answer_that_the_template_ends_is_no_change():
    """An answer that ran into max_tokens has no end token; the template puts one behind it."""
    found = joined([turn(QUESTION, ANSWER[:-1]), turn([*QUESTION, *ANSWER[:-1], END, *RESULT], words(900, 9))])
    assert (len(found.joined), len(found.changed)) == (1, 0)


def test_turns_behind_a_changed_one_come_after_a_change():
    third = [*QUESTION, *ANSWER[:5], 999, *ANSWER[6:], *RESULT]
    fourth = [*third, *words(900, 9), END, *words(950, 9), *QUESTION[-4:]]
    found = joined([turn(QUESTION, ANSWER, "a"), turn(third, [*words(900, 9), END], "b"), turn(fourth, [5], "c")])
    assert {turn.turn.name[0]: (bool(turn.differences), turn.after_a_change) for turn in found.joined} == {
        "b": (True, True),
        "c": (False, True),
    }


def test_the_first_differing_tokens_are_named():
    later = [*QUESTION, *ANSWER[:5], 999, 998, *ANSWER[6:], *RESULT]
    (changed,) = joined([turn(QUESTION, ANSWER), turn(later, [5])]).changed
    (difference,) = changed.differences
    assert (difference.at, difference.was, difference.now) == (len(QUESTION) + 5, (205,), (999, 998))


def test_turns_without_a_trained_token_are_counted_beside_trained_ones():
    second = [*QUESTION, *ANSWER, *RESULT]
    found = joined([turn(QUESTION, ANSWER), turn(second, words(900, 9), trained=False)])
    assert found.untrained == 1


def test_a_log_that_no_trainer_scored_has_no_untrained_turn():
    second = [*QUESTION, *ANSWER, *RESULT]
    found = joined([turn(QUESTION, ANSWER, trained=False), turn(second, words(900, 9), trained=False)])
    assert found.untrained == 0


def test_a_log_without_turns_has_no_conversation():
    assert joined([]).joined == ()
