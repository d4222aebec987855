"""What stands in a cell of weight updates: that a release has no such calls, that it failed, or what stayed old."""

from typing import Any

import pytest
from releases.update_cells import update_cells, without_cases

from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.parts import Parts
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.laboratory.studies.updates.cases import CaseKind
from rlaudit.laboratory.studies.updates.parts_read import PartsRead
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode

PLACE = "prefix-caching=on/mode=wait, clear_cache=True"


def case_of(**fields: Any) -> JudgedCase:
    usual: dict[str, Any] = {
        "start": "vLLM 0.18.1, prefix-caching=on", "version": "0.18.1", "path": "load_weights", "transport": None,
        "levels": {"prefix-caching": "on"}, "name": "mode=wait, clear_cache=True", "kind": CaseKind.MATRIX,
        "mode": PauseMode.WAIT,
        "clear_cache": True, "problem": None, "clean": None, "in_flight": RequestCount(), "around": RequestCount(),
        "lags": (), "parts": None, "staleness": None, "continuity": None, "seconds": 1.0, "cell": "abc",
        "unsupported": False,
    }  # fmt: skip
    return JudgedCase(**(usual | fields))


def words(case: JudgedCase) -> dict[str, str | None]:
    return {name: cell.word for name, _, cell in update_cells([case])}


@pytest.mark.parametrize(("unsupported", "word"), [(True, "not there"), (False, "failed")])
def test_a_case_that_did_not_run_says_whether_the_release_has_such_calls(unsupported: bool, word: str) -> None:
    case = case_of(problem="load: this vLLM has no reload_weights", unsupported=unsupported)
    assert words(case) == {f"{PLACE}/ran": word}
    assert without_cases([case]) == [
        "vLLM 0.18.1, prefix-caching=on, mode=wait, clear_cache=True: load: this vLLM has no reload_weights"
    ]


@pytest.mark.parametrize(
    ("verdict", "old", "word"),
    [
        (Verdict.MATCH, (), "all new"),
        (Verdict.MISMATCH, ("lm_head.weight",), "1 OLD: the head"),
        (Verdict.MISMATCH, ("lm_head.weight", "model.norm.weight"), "2 OLD: the head and 1 more"),
        (Verdict.INCONCLUSIVE, (), "undecided"),
    ],
)
def test_parts_that_stayed_old_are_named(verdict: Verdict, old: tuple[str, ...], word: str) -> None:
    read = PartsRead("1", 3 - len(old), old, (), (), 3)
    assert words(case_of(parts=Parts(verdict, "because", "figures", read)))[f"{PLACE}/parts"] == word
