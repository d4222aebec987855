"""Blind trials, their confusion matrix and the command around them."""

import pytest
from evidence.selftest.cells import PAIRS, cells
from evidence.selftest.confusion import confusion_of
from evidence.selftest.document import document_of
from evidence.selftest.matrix import printed
from evidence.selftest.run import run_trials
from evidence.selftest.trial import Trial
from selftest.blind import Label
from worlds.plant import Dose

from rlaudit.causes.attribution.attribute import all_causes
from rlaudit.errors import UsageError


def test_trials_do_not_depend_on_the_number_of_processes():
    label, *_ = cells(["off-by-one"])
    alone = run_trials("development", [label], 2, 4, 1)
    together = run_trials("development", [label], 2, 4, 2)
    assert alone == together


def test_an_unknown_cause_or_generator_is_a_usage_error():
    with pytest.raises(UsageError, match="gravity"):
        cells(["gravity"])
    with pytest.raises(UsageError, match="nature"):
        run_trials("nature", cells(["clean"]), 1, 0, 1)


def test_the_matrix_covers_the_causes_at_three_doses_and_pairs_of_them():
    every = cells()
    assert len({label.causes for label in every if len(label.causes) == 1}) >= 14
    assert sum(len(label.causes) == 1 for label in every) == 3 * len(all_causes())
    assert {pair.causes for pair in PAIRS} <= {label.causes for label in every}
    assert Label() in every


def trial(label, named, clean=False):
    return Trial(label, frozenset(named), clean, "")


def test_targets_count_what_was_planted_missed_and_named_wrongly():
    top, pair, clean = Label(("bos",), (Dose.TOP,)), PAIRS[0], Label()
    trials = [
        *[trial(top, ["bos"])] * 9,
        trial(top, ["penalty"]),
        *[trial(pair, pair.causes)] * 10,
        *[trial(clean, [], clean=True)] * 10,
    ]
    confusion = confusion_of("development", [top, pair, clean], trials)
    targets = {target.title: target for target in confusion.targets}
    assert targets["recall at the top dose"].value == pytest.approx(0.9)
    assert not targets["recall at the top dose"].met
    assert targets["two faults: both named"].met
    assert targets["a wrong cause named"].value == pytest.approx(1 / 30)
    assert not confusion.met
    low, high = targets["recall at the top dose"].interval
    assert low < 0.6 and high > 0.99


def test_a_clean_world_in_which_nothing_is_named_but_no_match_is_said_was_not_called_clean():
    confusion = confusion_of("development", [Label()], [trial(Label(), [])])
    assert confusion.cells[0].recall == 0.0
    assert confusion.cells[0].named == {"nothing named": 1}


def test_the_table_shows_every_cell_every_target_and_what_was_missed():
    label = Label(("bos",), (Dose.TOP,))
    text = printed(document_of(confusion_of("development", [label], [trial(label, ["penalty"])])))
    assert "MISSED" in text
    assert "Below their target\n  - bos (top): recall 0.00 < 0.95" in text
    assert "penalty 1" in text
