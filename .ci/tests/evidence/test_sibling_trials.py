"""Blind trials from ids and one logprob a token: what is planted, what counts as said, and the command around them."""

from functools import cache

import numpy as np
import pytest
from evidence.selftest.__main__ import selftest
from evidence.selftest.matrix import printed
from evidence.selftest.sibling_document import document_of_siblings, targets_of
from evidence.selftest.sibling_trials import (
    SiblingLabel,
    SiblingTrial,
    all_sibling_faults,
    sibling_labels,
    sibling_trial,
)
from selftest.blind import CLEAN
from worlds.plant import Dose

from rlaudit.errors import UsageError
from rlaudit.meaning.broken_groups import Broken
from rlaudit.meaning.meaning import Kind


@cache
def at_top_dose(fault):
    return sibling_trial(SiblingLabel(fault, Dose.TOP), np.random.default_rng(7))


@pytest.mark.parametrize("fault", [*all_sibling_faults(), CLEAN])
def test_the_top_dose_is_said_and_nothing_that_is_not_so(fault):
    found = at_top_dose(fault)
    assert found.recalled, found.said
    assert not found.wrong


def test_every_deviation_that_ids_and_logprobs_show_and_every_breaker_is_planted():
    planted = all_sibling_faults()
    kinds = {kind for fault in planted.values() for kind in fault.kinds}
    assert {Kind.RAW_REPORT, Kind.TRAINER, Kind.HIDDEN_FILTER, Kind.HIDDEN_SAMPLING} <= kinds
    broken = {kind for fault in planted.values() for kind in fault.broken}
    assert broken >= {Broken.COPIES, Broken.OTHER_CONTEXTS, Broken.CHOSEN}


def test_rows_are_every_fault_at_three_doses_and_nothing_once():
    every = sibling_labels()
    assert len(every) == 3 * len(all_sibling_faults()) + 1
    assert sibling_labels(["copies"], [Dose.TOP]) == (SiblingLabel("copies", Dose.TOP),)
    with pytest.raises(UsageError, match="gravity"):
        sibling_labels(["gravity"])


def test_a_match_of_a_planted_deviation_is_wrong_and_an_open_verdict_is_not():
    label = SiblingLabel("raw-logprobs", Dose.TOP)
    said = {kind: SiblingTrial(label, kind, ()) for kind in (Kind.RAW_REPORT, Kind.AGREE, Kind.TRAINER, Kind.UNTOLD)}
    assert [one.recalled for one in said.values()] == [True, False, False, False]
    assert [one.wrong for one in said.values()] == [False, True, True, False]


def test_a_breaker_has_to_be_named():
    label = SiblingLabel("copies", Dose.TOP)
    assert SiblingTrial(label, Kind.UNTOLD, (Broken.COPIES,)).recalled
    assert not SiblingTrial(label, Kind.UNTOLD, ()).recalled
    assert SiblingTrial(label, Kind.RAW_REPORT, ()).wrong


def test_what_was_missed_stands_in_the_matrix_and_decides_whether_it_is_met():
    label = SiblingLabel("hidden-top-p", Dose.TOP)
    report = document_of_siblings([SiblingTrial(label, Kind.UNTOLD, ())])
    assert not report.met
    assert "hidden-top-p (0.8): recall 0.00 < 0.95" in printed(report)
    assert all(target.met for target in targets_of([SiblingTrial(label, Kind.HIDDEN_FILTER, ())]))


def test_the_command_plants_in_logs_of_ids_and_logprobs_only(capsys):
    assert selftest(ids_only=True, causes="copies", doses="top", trials=1, jobs=1) == 0
    assert "1 blind trials in 1 cells from ids and one logprob a token" in capsys.readouterr().out
    with pytest.raises(UsageError, match="Give one of them"):
        selftest(ids_only=True, engines=True)
