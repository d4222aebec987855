"""What judged cases amount to, and which sequence of calls to use after them."""

from dataclasses import replace

import pytest
from judged_cases import CLEAN, around, judged, measured, read
from pydantic import TypeAdapter

from rlaudit.diagnosis.updates.findings import findings_of, sequences
from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.parts import Parts
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.laboratory.studies.updates.parts_read import HEAD, PartsRead
from rlaudit.layers import Verdict
from rlaudit.report.of_updates import exit_code


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


def test_sequences_that_differ_in_their_mode_only_are_named_together() -> None:
    cases = [around(mode, clear, Verdict.MATCH, 0.0) for clear in (True, False) for mode in ("keep", "wait")]
    assert sequences(cases) == "mode=keep|wait, clear_cache=True; mode=keep|wait, clear_cache=False"


def test_stale_sequences_of_one_start_are_one_error_with_the_smallest_of_their_figures() -> None:
    cases = [around("keep", False, Verdict.MISMATCH, 0.4), around("wait", False, Verdict.MISMATCH, 0.2)]
    (finding,) = findings_of(cases)
    assert (finding.name, finding.severity) == ("stale-kv", "error")
    assert "mode=keep|wait, clear_cache=False" in finding.message
    assert "0.2 [0.1, 0.4]" in finding.sure and "64 prompt tokens" in finding.sure


@pytest.mark.parametrize(
    ("low", "name"), [(0.02, "flight-on-old-keys"), (0.001, "stale-kv-undecided")], ids=["surely", "perhaps"]
)
def test_requests_in_flight_that_keep_old_keys_are_a_warning_and_so_is_an_open_interval(low: float, name: str) -> None:
    flight = measured(0.03, low, 0.05)
    case = judged(staleness=replace(CLEAN, flight=flight, flight_margin=0.01))
    (finding,) = findings_of([case])
    assert (finding.name, finding.severity, case.clean) == (name, "warning", False)


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
