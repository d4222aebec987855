"""The contract of the exit code, on verdicts alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.diagnosis.document import exit_code
from rlaudit.layers import Verdict

MATCH, MISMATCH = Verdict.MATCH, Verdict.MISMATCH
INCONCLUSIVE, NOT_TESTED = Verdict.INCONCLUSIVE, Verdict.NOT_TESTED


def diagnosis(*verdicts: Verdict, arms: tuple[str, ...] = ("ok",)) -> Any:
    states = {("block", str(number)): SimpleNamespace(status=status) for number, status in enumerate(arms)}
    layers = tuple(SimpleNamespace(verdict=verdict) for verdict in verdicts)
    return SimpleNamespace(run=SimpleNamespace(arms=states), layers=layers)


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
        ((NOT_TESTED, NOT_TESTED, NOT_TESTED), 3),
    ],
)
def test_the_first_layer_that_does_not_match_decides(verdicts: tuple[Verdict, ...], code: int) -> None:
    assert exit_code(diagnosis(*verdicts), MISMATCH) == code


@pytest.mark.parametrize("fail_on", [MISMATCH, None])
def test_a_failed_arm_is_3_whatever_the_verdicts_and_fail_on(fail_on: Verdict | None) -> None:
    for verdicts in ((MATCH, MATCH, MATCH), (MISMATCH, MATCH, NOT_TESTED)):
        assert exit_code(diagnosis(*verdicts, arms=("ok", "failed")), fail_on) == 3


def test_an_unsupported_arm_is_an_answer_and_not_a_failure() -> None:
    assert exit_code(diagnosis(MATCH, MATCH, MATCH, arms=("ok", "unsupported")), MISMATCH) == 0


def test_fail_on_never_forgives_a_mismatch_but_not_what_was_not_judged() -> None:
    assert exit_code(diagnosis(MISMATCH, MATCH, NOT_TESTED), None) == 0
    assert exit_code(diagnosis(INCONCLUSIVE, MATCH, NOT_TESTED), None) == 3
