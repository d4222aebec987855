"""Which part kept the old weights: what was read back, and what scores say to it."""

from collections.abc import Sequence

from flights import ScoredFlights, run_of

from rlaudit.diagnosis.updates.parts import judge_parts
from rlaudit.laboratory.studies.updates.cases import COLD_AFTER
from rlaudit.laboratory.studies.updates.parts_read import HEAD, PartsRead, parts_read
from rlaudit.layers import Verdict

MARGIN = 1e-3


def read(logits: str | None = "1", unread: Sequence[str] = (), **tensors: str | None) -> PartsRead | None:
    return parts_read(case="case", believed="1", tensors=tensors, unread=list(unread), logits=logits)


def cold(**checkpoints: float) -> ScoredFlights:
    return ScoredFlights().add(run_of(COLD_AFTER, [1] * 8, submitted=1), **checkpoints)


def test_tensors_are_sorted_by_the_version_that_is_held_of_them() -> None:
    found = read(q="0", k="1", v=None, unread=["o"])
    assert found is not None
    assert (found.tensors, found.new, found.old, found.of_no_version, found.unread) == (4, 1, ("q",), ("v",), ("o",))
    assert read() is None


def test_a_tied_head_that_computes_with_a_copy_is_seen_in_the_logits() -> None:
    found = read("0", embed="1")
    assert found is not None and found.old == (HEAD,) and found.old_head_behind


def test_what_is_of_no_version_is_named_where_scores_fit_nothing() -> None:
    scored = cold(v1=0.3, v0=0.3)
    parts = judge_parts(read(q=None, k="1"), scored.tokens(), MARGIN)
    assert parts.verdict is Verdict.MISMATCH
    assert parts.because == "q holds values of no known version"


def test_scores_that_fit_the_new_weights_and_a_clean_read_back_prove_the_update() -> None:
    scored = cold(v1=0.0, v0=0.3)
    parts = judge_parts(read(w="1"), scored.tokens(), MARGIN)
    assert parts.verdict is Verdict.MATCH
    assert parts.because == "everything is updated"
    assert "1 of 1 tensors read back as new" in parts.sure


def test_versions_that_are_too_near_to_each_other_prove_nothing() -> None:
    scored = cold(v1=0.0, v0=0.0)
    parts = judge_parts(read(w="1"), scored.tokens(), MARGIN)
    assert parts.verdict is Verdict.INCONCLUSIVE and "too small" in parts.because


def test_a_part_is_named_when_the_mixture_with_its_old_weights_fits() -> None:
    scored = cold(v1=0.3, v0=0.3, mixture=0.0)
    parts = judge_parts(read("0", w="1"), scored.tokens("mixture"), MARGIN)
    assert parts.verdict is Verdict.MISMATCH
    assert parts.because.startswith("the head kept the old weights")


def test_an_update_that_did_nothing_fits_the_old_weights() -> None:
    scored = cold(v1=0.3, v0=0.0)
    parts = judge_parts(None, scored.tokens(), MARGIN)
    assert parts.verdict is Verdict.MISMATCH and parts.because == "nothing was updated: the scores fit the old weights"


def test_a_read_back_that_the_scores_contradict_shows_nothing() -> None:
    scored = cold(v1=0.0, v0=0.3)
    parts = judge_parts(read("0", w="1"), scored.tokens(), MARGIN)
    assert parts.verdict is Verdict.INCONCLUSIVE


def test_scores_that_fit_nothing_are_a_mismatch_without_a_culprit() -> None:
    scored = cold(v1=0.3, v0=0.3)
    parts = judge_parts(read(w="1"), scored.tokens(), MARGIN)
    assert parts.verdict is Verdict.MISMATCH and "do not explain this" in parts.because
