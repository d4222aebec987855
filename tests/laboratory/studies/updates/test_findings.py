"""What judged cases amount to, and what is recommended after them."""

from dataclasses import replace
from typing import Any

import pytest

from rlaudit.laboratory.studies.updates.cases import CaseKind, UpdateCase
from rlaudit.laboratory.studies.updates.document import exit_code
from rlaudit.laboratory.studies.updates.findings import findings_of
from rlaudit.laboratory.studies.updates.judge import JudgedCase
from rlaudit.laboratory.studies.updates.parts import HEAD, Parts, PartsRead
from rlaudit.laboratory.studies.updates.plan import EngineStart
from rlaudit.laboratory.studies.updates.recommendation import recommend
from rlaudit.laboratory.studies.updates.records import EngineRecord
from rlaudit.laboratory.studies.updates.requests import RequestCount
from rlaudit.laboratory.studies.updates.staleness import Staleness
from rlaudit.layers import Verdict

COUNT = RequestCount(submitted=16, completed=16)
CLEAN = Staleness(Verdict.MATCH, "", 0, None, None, None, None, 0.1, 1e-3)


def read(*old: str) -> PartsRead:
    return PartsRead(
        "1",
        3,
        3 - len(old),
        2,
        1,
        old,
        (),
        tuple(name for name in old if name == HEAD),
        "0" if HEAD in old else "1",
        {},
    )


def judged(
    kind: str = "matrix",
    case: dict[str, Any] | None = None,
    kind_of_engine: str = "V1",
    path: str = "reload_weights",
    **more: Any,
) -> JudgedCase:
    mine = UpdateCase(**{"name": "the case", "kind": CaseKind(kind), "steps": (), **(case or {})})
    start = EngineStart("the start", "0.18.1", path, {}, (mine,), {"prefix-caching": "on"})
    record = EngineRecord(start, "ok", None, {}, kind_of_engine, (), (), (), (), {})
    whole = JudgedCase(record, mine, None, COUNT, COUNT, (), staleness=CLEAN if kind == "matrix" else None)
    return replace(whole, **more)


def names(*cases: JudgedCase) -> list[str]:
    return [finding.name for finding in findings_of(cases)]


def test_a_clean_case_says_nothing() -> None:
    assert names(judged()) == []


def test_a_part_that_keeps_old_weights_is_an_error_with_a_way_out() -> None:
    parts = Parts(Verdict.MISMATCH, "the head kept the old weights", "k3 0.1", read(HEAD), None, None, None)
    (finding,) = findings_of([judged(parts=parts)])
    assert (finding.name, finding.severity) == ("part-not-updated", "error")
    assert "untied checkpoint" in finding.next


def test_a_path_that_the_release_refuses_is_a_note_and_not_a_failure() -> None:
    (finding,) = findings_of([judged("path", problem="update: no such thing")])
    assert (finding.name, finding.severity) == ("refused", "note")


def test_a_planted_part_must_be_named() -> None:
    case = {"planted": ("layers.12.",)}
    parts = Parts(Verdict.MISMATCH, "", "", read("model.layers.12.mlp.w", HEAD), None, None, None)
    assert names(judged("planted", case, parts=parts)) == ["planted-found"]
    missed = Parts(Verdict.MATCH, "", "", read(), None, None, None)
    assert names(judged("planted", case, parts=missed)) == ["planted-missed"]


def test_a_part_sent_again_as_it_was_is_named_or_was_not_taken() -> None:
    case = {"late": ("layers.7.norm",)}
    named = Parts(Verdict.MISMATCH, "", "", read("model.layers.7.norm.weight", HEAD), None, None, None)
    assert names(judged("planted", case, parts=named)) == ["planted-found"]
    ignored = Parts(Verdict.MISMATCH, "", "", read(HEAD), None, None, None)
    (finding,) = findings_of([judged("planted", case, parts=ignored)])
    assert (finding.name, finding.severity) == ("late-copy-ignored", "note")
    blind = Parts(Verdict.MATCH, "", "", replace(read(), unread=("model.layers.7.norm.weight",)), None, None, None)
    assert names(judged("planted", case, parts=blind)) == ["planted-missed"]


def test_a_planted_part_named_among_others_is_not_found() -> None:
    parts = Parts(Verdict.MISMATCH, "", "", read("model.layers.12.w", "model.layers.13.w"), None, None, None)
    assert names(judged("planted", {"planted": ("layers.12.",)}, parts=parts)) == ["planted-missed"]


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


def test_the_cheapest_clean_sequence_is_recommended() -> None:
    stale = replace(CLEAN, verdict=Verdict.MISMATCH)
    cases = [
        judged(case={"name": "a", "mode": "keep", "clear_cache": False}, staleness=stale),
        judged(case={"name": "b", "mode": "abort", "clear_cache": True}),
        judged(case={"name": "c", "mode": "keep", "clear_cache": True}),
    ]
    (recommended,) = recommend(cases)
    assert recommended.code is not None
    assert 'mode="keep"' in recommended.code and "clear_cache=True" in recommended.code
    assert "a (stale keys and values are served)" in recommended.because


def test_nothing_is_recommended_where_nothing_was_clean() -> None:
    (recommended,) = recommend([judged(staleness=replace(CLEAN, verdict=Verdict.INCONCLUSIVE))])
    assert recommended.code is None and "no sequence that was tried is clean" in recommended.because


@pytest.mark.parametrize(("mode", "drains"), [("keep", False), ("wait", True)])
def test_v0_is_updated_between_two_steps(mode: str, drains: bool) -> None:
    case = {"mode": mode, "clear_cache": False}
    (recommended,) = recommend([judged(case=case, kind_of_engine="V0", path="load_weights")])
    assert recommended.code is not None
    compile(recommended.code, "recommendation", "exec")
    assert ("engine.step()" in recommended.code) is drains and "pause_generation" not in recommended.code


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
    assert exit_code([cannot, judged(kind="path")], (), fail_on_mismatch=True) == 3
