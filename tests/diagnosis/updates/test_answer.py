"""The answer of a run: what is right, what other ways leave behind, and what to set or call."""

from dataclasses import replace

import pytest
from judged_cases import CLEAN, COUNT, around, judged, read

from rlaudit.diagnosis.updates.answer import answer
from rlaudit.diagnosis.updates.continuity import Continuity
from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.parts import Parts
from rlaudit.laboratory.studies.updates.cases import CaseKind
from rlaudit.laboratory.studies.updates.parts_read import HEAD
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode

STALE = replace(CLEAN, verdict=Verdict.MISMATCH)
HEAD_OLD = Parts(Verdict.MISMATCH, "the head kept the old weights", "", read(HEAD))


def test_the_cheapest_clean_sequence_is_right_and_what_others_leave_comes_with_its_way_out() -> None:
    cases = [
        judged(name="mode=keep, clear_cache=False", clear_cache=False, staleness=STALE),
        judged(name="mode=abort, clear_cache=True", mode=PauseMode.ABORT),
        judged(name="mode=keep, clear_cache=True"),
    ]
    assert answer(cases) == (
        "Right: mode=keep, clear_cache=True on vLLM 0.18.1 (reload_weights).",
        "Old keys and values reach new requests on vLLM 0.18.1 (reload_weights) with mode=keep, clear_cache=False. "
        "Set clear_cache=True in pause_generation, or a cache_salt per version of the weights.",
    )


def test_what_is_clean_in_one_engine_and_not_in_another_of_the_same_way_is_not_right() -> None:
    cases = [judged(start="cached", staleness=STALE), judged(start="not cached")]
    assert answer(cases)[0] == "Nothing that was tried is right on vLLM 0.18.1 (reload_weights)."


def test_without_a_case_that_ran_nothing_is_known() -> None:
    assert answer([judged(problem="the engine died")]) == ("Nothing is known: no way to update ran here.",)


def test_ways_that_share_an_answer_share_a_sentence_and_a_broadcast_is_named() -> None:
    cases = [judged(), judged(path="load_weights", brought_by="broadcast")]
    assert answer(cases) == ("Right: the case on vLLM 0.18.1 (reload_weights) and 0.18.1 (load_weights, broadcast).",)
    assert answer([*cases, judged(version="0.32.0")])[0].endswith("0.18.1 (load_weights, broadcast) and 1 more.")


def test_a_part_that_stays_old_is_what_a_clean_sequence_leaves_behind() -> None:
    (right,) = answer([judged(parts=HEAD_OLD)])
    assert right.startswith(
        "Old weights stay in the head on vLLM 0.18.1 (reload_weights). All else is right there with"
    )
    assert "untied checkpoint" in right


def test_an_engine_without_a_pause_is_to_be_held() -> None:
    right, held = answer([judged(engine="V0", clear_cache=False)])
    assert right.startswith("Right: ") and "hold the loop that steps the engine" in held


def test_an_adapter_is_told_what_to_be_called() -> None:
    adapter = {"kind": CaseKind.ADAPTER, "path": "adapter", "mode": PauseMode.NONE}
    kept = judged(**adapter, name="old name and number", parts=HEAD_OLD)
    shared = judged(**adapter, name="new number, old name", staleness=STALE)
    sentences = answer([kept, shared])
    assert [sentence for sentence in sentences if "lora_int_id" in sentence and "old name and number" in sentence]
    assert [sentence for sentence in sentences if "lora_name" in sentence and "new number, old name" in sentence]


EVERY = {
    "stale": {"staleness": STALE},
    "undecided": {"staleness": replace(CLEAN, verdict=Verdict.INCONCLUSIVE)},
    "lost": {"in_flight": replace(COUNT, completed=15, lost=1)},
    "broken": {"continuity": Continuity(Verdict.MISMATCH, "", 1, None)},
    "head": {"parts": HEAD_OLD},
}


@pytest.mark.parametrize("fault", EVERY)
def test_no_sentence_has_more_than_25_words_however_many_releases_share_it(fault: str) -> None:
    cases = [faulty(version, mode, fault) for version in ("0.8.5", "0.18.1", "0.28.0", "0.32.0") for mode in PauseMode]
    sentences = [part for sentence in answer(cases) for part in sentence.removesuffix(".").split(". ")]
    assert len(sentences) > 1 and max(len(sentence.split()) for sentence in sentences) <= 25


def faulty(version: str, mode: PauseMode, fault: str) -> JudgedCase:
    plain = around(mode, clear=False, verdict=Verdict.MATCH, size=0.0)
    case = replace(plain, version=version, brought_by="broadcast", **EVERY[fault])
    return replace(case, clean=not case.faults)
