"""The contract of the exit code, on verdicts alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.diagnosis.judgement import exit_code_of
from rlaudit.layers import Verdict
from rlaudit.report.of_arms import unfinished

MATCH, MISMATCH = Verdict.MATCH, Verdict.MISMATCH
INCONCLUSIVE, NOT_TESTED = Verdict.INCONCLUSIVE, Verdict.NOT_TESTED
NOTHING_FOUND = Verdict.NOTHING_FOUND


def run_with(*states: str) -> Any:
    arms = {("block", str(number)): SimpleNamespace(status=status) for number, status in enumerate(states)}
    return SimpleNamespace(arms=arms)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ((MATCH, MATCH, MATCH), 0),
        ((MISMATCH, MATCH, NOT_TESTED), 1),
        ((MISMATCH, NOT_TESTED, NOT_TESTED), 1),
        ((MATCH, MISMATCH, NOT_TESTED), 1),
        ((MATCH, MATCH, MISMATCH), 1),
        ((INCONCLUSIVE, NOT_TESTED, NOT_TESTED), 3),
        ((INCONCLUSIVE, MISMATCH, NOT_TESTED), 3),
        ((MATCH, INCONCLUSIVE, NOT_TESTED), 3),
        ((NOTHING_FOUND, MATCH, NOTHING_FOUND), 0),
        ((NOTHING_FOUND, MISMATCH, NOT_TESTED), 1),
        ((NOTHING_FOUND, NOT_TESTED, NOT_TESTED), 3),
        ((NOT_TESTED, NOT_TESTED, NOT_TESTED), 3),
    ],
)
def test_the_first_layer_that_does_not_pass_decides(verdicts: tuple[Verdict, ...], code: int) -> None:
    assert exit_code_of(verdicts, unfinished=False, fails=True) == code


def test_that_nothing_was_found_is_3_only_if_a_match_is_required() -> None:
    assert exit_code_of((NOTHING_FOUND, MATCH, MATCH), unfinished=False, fails=True, requires_match=True) == 3
    assert exit_code_of((MATCH, MATCH, MATCH), unfinished=False, fails=True, requires_match=True) == 0
    assert exit_code_of((NOTHING_FOUND, MISMATCH, MATCH), unfinished=False, fails=True, requires_match=True) == 1


@pytest.mark.parametrize("fails", [True, False])
def test_what_was_not_finished_is_3_whatever_the_verdicts_and_fail_on(fails: bool) -> None:
    for verdicts in ((MATCH, MATCH, MATCH), (MISMATCH, MATCH, NOT_TESTED)):
        assert exit_code_of(verdicts, unfinished=True, fails=fails) == 3


def test_a_run_with_a_failed_arm_is_not_finished_and_an_unsupported_one_is_an_answer() -> None:
    assert unfinished(run_with("ok", "failed"))
    assert not unfinished(run_with("ok", "unsupported"))


def test_fail_on_never_forgives_a_mismatch_but_not_what_was_not_judged() -> None:
    assert exit_code_of((MISMATCH, MATCH, NOT_TESTED), unfinished=False, fails=False) == 0
    assert exit_code_of((INCONCLUSIVE, MATCH, NOT_TESTED), unfinished=False, fails=False) == 3
