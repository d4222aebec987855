"""What the stale-KV protocol found on one engine start is said once, with the weakest of its figures."""

from dataclasses import replace
from typing import Any

from rlaudit.laboratory.studies.updates.cases import CaseKind, UpdateCase
from rlaudit.laboratory.studies.updates.judge import JudgedCase
from rlaudit.laboratory.studies.updates.plan import EngineStart
from rlaudit.laboratory.studies.updates.records import EngineRecord
from rlaudit.laboratory.studies.updates.requests import RequestCount
from rlaudit.laboratory.studies.updates.stale_findings import sequences, stale_findings
from rlaudit.laboratory.studies.updates.staleness import Staleness
from rlaudit.layers import Verdict
from rlaudit.measurement.contrast import Contrast

ALL_WELL = RequestCount(submitted=16, completed=16)


def excess(value: float) -> Contrast:
    values: dict[str, Any] = dict.fromkeys(Contrast.__annotations__)
    values |= {"metric": "k3", "difference": value, "low": value / 2, "high": value * 2, "reliable": True}
    return Contrast(**values)


def judged(mode: str, clear: bool, verdict: Verdict, size: float, cached: int = 64) -> JudgedCase:
    case = UpdateCase(f"mode={mode}, clear_cache={clear}", CaseKind.MATRIX, (), mode, clear)
    start = EngineStart("vLLM 0.18.1, prefix-caching=on", "0.18.1", "reload_weights", {}, (case,), {})
    record = EngineRecord(start, "ok", None, {}, "V1", (), (), (), (), {})
    stale = Staleness(verdict, "because", cached, excess(size), excess(1e-9), None, None, 0.1, 1e-3)
    return JudgedCase(record, case, None, ALL_WELL, ALL_WELL, (), staleness=stale)


def test_sequences_that_differ_in_their_mode_only_are_named_together() -> None:
    cases = [judged(mode, clear, Verdict.MATCH, 0.0) for clear in (True, False) for mode in ("keep", "wait")]
    assert sequences(cases) == "mode=keep|wait, clear_cache=True; mode=keep|wait, clear_cache=False"


def test_stale_sequences_of_one_start_are_one_error_with_the_smallest_of_their_figures() -> None:
    cases = [judged("keep", False, Verdict.MISMATCH, 0.4), judged("wait", False, Verdict.MISMATCH, 0.2)]
    (finding,) = stale_findings(cases)
    assert (finding.name, finding.severity) == ("stale-kv", "error")
    assert "mode=keep|wait, clear_cache=False" in finding.message
    assert "0.2 [0.1, 0.4]" in finding.sure and "64 prompt tokens" in finding.sure


def test_clean_sequences_are_said_with_the_largest_of_their_figures() -> None:
    cases = [judged("keep", True, Verdict.MATCH, 1e-7, 0), judged("wait", True, Verdict.MATCH, 1e-5, 0)]
    (finding,) = stale_findings(cases)
    assert (finding.name, finding.severity) == ("no-stale-kv", "note")
    assert "1e-05 [5e-06, 2e-05]" in finding.message


def test_a_case_that_could_not_be_decided_is_a_warning_of_its_own() -> None:
    (finding,) = stale_findings([judged("keep", False, Verdict.INCONCLUSIVE, 1e-3)])
    assert (finding.name, finding.severity) == ("stale-kv-undecided", "warning")


def test_a_case_that_did_not_run_proves_nothing() -> None:
    failed = replace(judged("keep", True, Verdict.MATCH, 1e-7), problem="the engine died")
    assert list(stale_findings([failed])) == []
