"""What is said of each kind of meaning: a cause if it is a mismatch, none if it is not."""

from dataclasses import replace

import numpy as np
import pytest

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW, Semantics
from rlaudit.meaning.meaning import Kind, LoggedFigures, Meaning, ScoredFigures
from rlaudit.meaning.report_fit import ReportFit
from rlaudit.meaning.sample_fit import SampleFit
from rlaudit.meaning.sharpness import Sharpness
from rlaudit.meaning.token_tests import SemanticTest, WhichTest
from rlaudit.meaning.words import conclusion_of
from rlaudit.statistics.estimate import Estimate
from rlaudit.statistics.measurement.measure import Measurement

COOL = Semantics(0.7)
OPEN_KINDS = (
    Kind.BETTER_FIT,
    Kind.FEW_BIASED,
    Kind.HANGING,
    Kind.WIDE,
    Kind.UNTOLD,
    Kind.COPIED,
    Kind.LEANING,
    Kind.FEW,
)
TOO_LITTLE = {Kind.WIDE, Kind.UNTOLD, Kind.FEW}
TESTED = SemanticTest(WhichTest.MEAN_RATIO, -0.7, 0.001, "mean ratio - 1", False, leans=True)
SCORED = ScoredFigures(
    ReportFit(RAW, COOL, False, 0.1, 0.2, -0.1, 0.1, 1e-6),
    SampleFit(COOL, COOL, True, 0.1, 0.05, 0.2, -30.0),
    (TESTED,),
    tokens=64,
    sequences=4,
    tried=30,
)
FOUND = Estimate(0.1, 0.05, 0.15, -20.0)
RATIO = Measurement(0.1, 0.05, 0.15, 64, 4, 4, "", "ratio", "bca", 0.95, True, None, ())
LOGGED = LoggedFigures(RATIO, FOUND, Sharpness(FOUND, 0.2, np.zeros(0)), FOUND, 0.1, 0.9, ("bos",), 64, 4)


def said(kind, figures):
    return conclusion_of(Meaning(kind, RAW, COOL, COOL, COOL, figures))


@pytest.mark.parametrize("figures", [SCORED, LOGGED], ids=["scores", "logs"])
@pytest.mark.parametrize("kind", Kind)
def test_a_kind_has_a_cause_where_it_is_a_mismatch_and_only_there(kind, figures):
    found = said(kind, figures)
    assert found.because
    assert (found.cause is not None) == (kind.verdict is Verdict.MISMATCH)


def test_what_was_requested_is_read_from_the_request():
    by_a_test_alone = replace(SCORED, sample=replace(SCORED.sample, theta=RAW, differs=False))
    for requested, origin in ((Semantics(top_p=0.95), "as requested"), (RAW, "not in the request")):
        meaning = Meaning(Kind.HIDDEN_FILTER, RAW, RAW, RAW, requested, by_a_test_alone)
        assert f"truncation {origin}" in conclusion_of(meaning).because


def test_samples_that_agree_for_long_are_not_said_to_be_the_same():
    """Words that a template puts at the beginning make long agreements, and nothing else of the samples is alike."""
    copied = said(Kind.COPIED, LOGGED)
    assert "are the same" not in copied.because and "not drawn" in copied.because and "loss_mask" in copied.next


def test_agreement_is_the_only_kind_that_matches_and_what_is_open_is_never_fine():
    assert [kind for kind in Kind if kind.verdict is Verdict.MATCH] == [Kind.AGREE]
    assert {kind for kind in Kind if kind.verdict is Verdict.INCONCLUSIVE} == set(OPEN_KINDS)


def test_each_kind_of_an_open_verdict_has_a_reason_of_its_own_and_says_what_settles_it():
    open_to_logs = [kind for kind in OPEN_KINDS if kind is not Kind.BETTER_FIT]
    assert all(said(kind, LOGGED).next for kind in open_to_logs)
    # Too little data is one reason; what is too little stands in its limits.
    assert len({said(kind, LOGGED).because for kind in open_to_logs}) == len(open_to_logs) - len(TOO_LITTLE) + 1
