"""The runs that two rows of ids have in common."""

import numpy as np
import pytest

from rlaudit.tokens.conversations.matched_runs import matched_runs


def runs(ours, theirs):
    found = matched_runs(np.array(ours, dtype=np.int32), np.array(theirs, dtype=np.int32))
    return [(run.ours, run.theirs, run.length) for run in found]


def test_equal_rows_are_one_run():
    assert runs(range(30), range(30)) == [(0, 0, 30)]


def test_rows_without_a_common_window_have_no_run():
    assert runs(range(30), range(100, 130)) == []


def test_a_row_without_ids_has_no_run():
    assert runs([], range(30)) == []


def test_other_ids_in_the_middle_stand_between_two_runs():
    assert runs(range(30), [*range(10), 99, 98, *range(12, 30)]) == [(0, 0, 10), (12, 12, 18)]


def test_ids_that_are_put_in_move_what_follows():
    assert runs(range(30), [*range(10), 99, *range(10, 30)]) == [(0, 0, 10), (10, 11, 20)]


def test_another_first_id_ends_no_run_behind_it():
    assert runs(range(30), [99, *range(1, 30)]) == [(1, 1, 29)]


def test_short_runs_between_long_ones_are_found():
    theirs = [*range(20), 99, 98, 22, 23, 24, 25, 97, 96, *range(28, 60)]
    assert runs(range(60), theirs) == [(0, 0, 20), (22, 22, 4), (28, 28, 32)]


def test_a_phrase_that_comes_twice_is_matched_in_order():
    phrase = [7, 8, 9, 7, 8, 9]
    ours = [*range(100, 120), *phrase, *range(200, 220), *phrase, *range(300, 320)]
    theirs = [5, *ours]
    assert runs(ours, theirs) == [(0, 1, len(ours))]


@pytest.mark.parametrize("seed", range(20))
def test_runs_hold_equal_ids_in_order_and_never_overlap(seed):
    rng = np.random.default_rng(seed)
    ours = rng.integers(0, 12, 300)
    theirs = np.delete(ours, rng.choice(300, 20, replace=False))
    theirs[rng.choice(len(theirs), 10, replace=False)] = 50
    last, last_there, matched = 0, 0, 0
    for at, at_there, length in runs(ours, theirs):
        assert at >= last and at_there >= last_there
        assert np.array_equal(ours[at : at + length], theirs[at_there : at_there + length])
        last, last_there, matched = at + length, at_there + length, matched + length
    # An id in ten is lost or another one; windows of three find most of what is left between.
    assert matched > 150
