"""What judged cases amount to, and which sequence of calls to use after them."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from rlaudit.diagnosis.updates.findings import findings_of, sequences, sequences_to_use
from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.parts import Parts
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.diagnosis.updates.staleness import Staleness
from rlaudit.laboratory.studies.updates.cases import CaseKind, UpdateCase
from rlaudit.laboratory.studies.updates.parts_read import HEAD, PartsRead
from rlaudit.laboratory.studies.updates.plan import EngineStart
from rlaudit.laboratory.studies.updates.records import EngineRecord
from rlaudit.layers import Verdict
from rlaudit.report.of_updates import exit_code
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.statistics.measurement.contrast import Contrast

COUNT = RequestCount(submitted=16, completed=16)
CLEAN = Staleness(Verdict.MATCH, "", 0, None, None, None, 0.1, 1e-3, None)


def read(*old: str) -> PartsRead:
    return PartsRead("1", 3 - len(old), old, (), (), 3, HEAD in old)


def judged(
    kind: str = "matrix",
    case: dict[str, Any] | None = None,
    kind_of_engine: str = "V1",
    path: str = "reload_weights",
    **more: Any,
) -> JudgedCase:
    mine = UpdateCase(**{"name": "the case", "kind": CaseKind(kind), "steps": (), **(case or {})})
    start = EngineStart("the start", "0.18.1", path, {}, (mine,), {"prefix-caching": "on"})
    record = EngineRecord(start, "ok", None, kind_of_engine, (), (), (), {})
    whole = JudgedCase(record, mine, None, COUNT, COUNT, staleness=CLEAN if kind == "matrix" else None)
    return replace(whole, **more)


def names(*cases: JudgedCase) -> list[str]:
    return [finding.name for finding in findings_of(cases)]


def test_a_clean_case_says_nothing() -> None:
    assert names(judged()) == []


def test_a_part_that_keeps_old_weights_is_an_error_with_a_way_out() -> None:
    parts = Parts(Verdict.MISMATCH, "the head kept the old weights", "k3 0.1", read(HEAD))
    (finding,) = findings_of([judged(parts=parts)])
    assert (finding.name, finding.severity) == ("part-not-updated", "error")
    assert "untied checkpoint" in finding.next


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (RequestCount(submitted=16, completed=15, lost=1), ["requests-lost"]),
        (RequestCount(submitted=16, completed=15, truncated=1), ["requests-lost"]),
        (RequestCount(submitted=16, completed=16, leaked_tokens=3), ["requests-lost"]),
        (RequestCount(submitted=16, completed=10, aborted=6), []),
    ],
)
def test_requests_that_do_not_come_back_whole_are_an_error(count: RequestCount, named: list[str]) -> None:
    assert names(judged(in_flight=count)) == named


def test_what_a_release_cannot_do_is_an_answer_and_what_broke_is_not() -> None:
    cannot = judged(problem="pause: no pause with mode=wait", unsupported=True, staleness=None)
    broke = judged(problem="settle: requests do not advance", staleness=None)
    assert [(finding.name, finding.severity) for finding in findings_of([cannot, broke])] == [
        ("case-not-run", "warning"),
        ("refused", "note"),
    ]
    assert exit_code([cannot, judged()], (), fail_on_mismatch=True) == 0
    assert exit_code([broke], (), fail_on_mismatch=True) == 3


def test_a_release_that_can_do_nothing_of_what_was_asked_leaves_the_question_open() -> None:
    cannot = judged(problem="pause: no pause with mode=keep", unsupported=True, staleness=None)
    assert exit_code([cannot], (), fail_on_mismatch=True) == 3


def test_the_cheapest_clean_sequence_is_the_one_to_use() -> None:
    cases = [
        judged(
            case={"name": "a", "mode": PauseMode.KEEP, "clear_cache": False},
            staleness=replace(CLEAN, verdict=Verdict.MISMATCH),
        ),
        judged(case={"name": "b", "mode": PauseMode.ABORT, "clear_cache": True}),
        judged(case={"name": "c", "mode": PauseMode.KEEP, "clear_cache": True}),
    ]
    assert sequences_to_use(cases) == [
        "the start: use c; not clean: mode=keep, clear_cache=False (stale keys and values are served)"
    ]


def test_none_is_to_be_used_if_none_was_clean() -> None:
    (sentence,) = sequences_to_use([judged(staleness=replace(CLEAN, verdict=Verdict.INCONCLUSIVE))])
    assert "no sequence that was tried is clean" in sentence


def test_an_engine_without_a_pause_is_to_be_held_and_a_part_that_stays_old_is_said() -> None:
    parts = Parts(Verdict.MISMATCH, "the head kept the old weights", "", read(HEAD))
    cases = [
        judged(case={"clear_cache": False}, kind_of_engine="V0"),
        judged(case={"mode": PauseMode.WAIT}, parts=parts),
    ]
    (sentence,) = sequences_to_use(cases)
    assert "hold the loop that steps the engine" in sentence
    assert sentence.endswith("with any of them, the head kept the old weights")


def excess(value: float) -> Contrast:
    values: dict[str, Any] = dict.fromkeys(Contrast.__annotations__)
    values |= {"metric": "k3", "difference": value, "low": value / 2, "high": value * 2, "reliable": True}
    return Contrast(**values)


def around(mode: str, clear: bool, verdict: Verdict, size: float, cached: int = 64) -> JudgedCase:
    stale = Staleness(verdict, "because", cached, excess(size), excess(1e-9), None, 0.1, 1e-3, None)
    case = {"name": f"mode={mode}, clear_cache={clear}", "mode": PauseMode(mode), "clear_cache": clear}
    return judged(case=case, staleness=stale)


def test_sequences_that_differ_in_their_mode_only_are_named_together() -> None:
    cases = [around(mode, clear, Verdict.MATCH, 0.0) for clear in (True, False) for mode in ("keep", "wait")]
    assert sequences(cases) == "mode=keep|wait, clear_cache=True; mode=keep|wait, clear_cache=False"


def test_stale_sequences_of_one_start_are_one_error_with_the_smallest_of_their_figures() -> None:
    cases = [around("keep", False, Verdict.MISMATCH, 0.4), around("wait", False, Verdict.MISMATCH, 0.2)]
    (finding,) = findings_of(cases)
    assert (finding.name, finding.severity) == ("stale-kv", "error")
    assert "mode=keep|wait, clear_cache=False" in finding.message
    assert "0.2 [0.1, 0.4]" in finding.sure and "64 prompt tokens" in finding.sure


def test_clean_sequences_are_said_with_the_largest_of_their_figures() -> None:
    cases = [around("keep", True, Verdict.MATCH, 1e-7, 0), around("wait", True, Verdict.MATCH, 1e-5, 0)]
    (finding,) = findings_of(cases)
    assert (finding.name, finding.severity) == ("no-stale-kv", "note")
    assert "1e-05 [5e-06, 2e-05]" in finding.message


def test_a_case_that_could_not_be_decided_is_a_warning_of_its_own() -> None:
    (finding,) = findings_of([around("keep", False, Verdict.INCONCLUSIVE, 1e-3)])
    assert (finding.name, finding.severity) == ("stale-kv-undecided", "warning")


def test_a_case_that_did_not_run_rules_nothing_out() -> None:
    failed = replace(around("keep", True, Verdict.MATCH, 1e-7), problem="the engine died")
    assert names(failed) == ["case-not-run"]


def test_a_read_back_in_a_report_of_0_4_0_is_read() -> None:
    written = {
        "believed": "1", "parameters": 3, "new": 2, "new_by_bytes": 2, "new_by_answer": 2, "old": ["lm_head.weight"],
        "of_no_version": [], "unread": [], "old_behind_new_bytes": ["lm_head.weight"], "logits": "0", "new_by_sums": 0,
    }  # fmt: skip
    assert TypeAdapter(PartsRead).validate_python(written).old == (HEAD,)
