"""Which part kept the old weights: what was read back, and what scores say to it."""

from typing import Any

from flights import ScoredFlights, run_of

from rlaudit.diagnosis.updates.parts import judge_parts
from rlaudit.laboratory.studies.updates.cases import COLD_AFTER
from rlaudit.laboratory.studies.updates.parts_read import HEAD, read_parts
from rlaudit.laboratory.studies.updates.records import ReadBack
from rlaudit.layers import Verdict

MARGIN = 1e-3


def told(bytes_: str | None, probe: str | None, *tensors: str) -> dict[str, Any]:
    return {"tensors": list(tensors), "bytes": bytes_, "probe": probe}


def read(logits: str = "1", **parameters: dict[str, Any]) -> ReadBack:
    return ReadBack("case", "1", parameters, logits)


def cold(**checkpoints: float) -> ScoredFlights:
    return ScoredFlights().add(run_of(COLD_AFTER, [1] * 8, submitted=1), **checkpoints)


def test_a_layer_that_answers_with_old_weights_is_old_whatever_its_parameter_holds() -> None:
    found = read_parts(read(qkv=told("1", "0", "q", "k", "v"), norm=told("1", None, "norm")))
    assert found is not None
    assert found.old == ("q", "k", "v")
    assert found.old_behind_new_bytes == ("qkv",)


def test_a_tied_head_that_computes_with_a_copy_is_seen_in_the_logits() -> None:
    found = read_parts(read("0", embed=told("1", "1", "model.embed_tokens.weight")))
    assert found is not None and found.old == (HEAD,) and found.old_behind_new_bytes == (HEAD,)


def test_what_neither_witness_can_tell_is_counted_as_unread() -> None:
    found = read_parts(read(odd=told(None, None)))
    assert found is not None and found.unread == ("odd",) and not found.old


def test_a_packed_layer_of_no_version_is_told_by_its_tensors() -> None:
    qkv = {**told(None, None, "q", "k", "v"), "parts": {"q": "0", "k": "1", "v": None}}
    found = read_parts(read(qkv=qkv, norm=told("1", None, "norm")))
    assert found is not None
    assert (found.old, found.of_no_version, found.unread, found.new) == (("q",), ("v",), (), 1)


def test_what_is_of_no_version_is_named_where_scores_fit_nothing() -> None:
    scored = cold(v1=0.3, v0=0.3)
    odd = {**told(None, None, "q", "k"), "parts": {"q": None, "k": "1"}}
    parts = judge_parts(read_parts(read(qk=odd)), scored.flights, scored.book, None, MARGIN)
    assert parts.verdict is Verdict.MISMATCH
    assert parts.because == "q holds what is of no version"


def test_experts_that_read_as_new_may_be_in_another_order_where_scores_fit_nothing() -> None:
    scored = cold(v1=0.3, v0=0.3)
    experts = told("1", None, "model.layers.0.block_sparse_moe.experts.0.w1.weight")
    parts = judge_parts(read_parts(read(w13=experts)), scored.flights, scored.book, None, MARGIN)
    assert parts.verdict is Verdict.MISMATCH
    assert "the kernel may read the experts' 1 parameters in another order" in parts.because
    norm = judge_parts(read_parts(read(norm=told("1", None, "norm"))), scored.flights, scored.book, None, MARGIN)
    assert norm.because.endswith("nothing that was read explains it")


def test_scores_that_fit_the_new_weights_and_a_clean_read_back_prove_the_update() -> None:
    scored = cold(v1=0.0, v0=0.3)
    parts = judge_parts(read_parts(read(w=told("1", "1", "w"))), scored.flights, scored.book, None, MARGIN)
    assert parts.verdict is Verdict.MATCH
    assert parts.because == "everything is updated"
    assert "1 of 1 parameters read back as new (1 by their bytes, 1 by their layer's answer)" in parts.sure


def test_versions_that_are_too_near_to_each_other_prove_nothing() -> None:
    scored = cold(v1=0.0, v0=0.0)
    parts = judge_parts(read_parts(read(w=told("1", "1", "w"))), scored.flights, scored.book, None, MARGIN)
    assert parts.verdict is Verdict.INCONCLUSIVE and "too small" in parts.because


def test_a_part_is_named_when_the_mixture_with_its_old_weights_fits() -> None:
    scored = cold(v1=0.3, v0=0.3, mixture=0.0)
    parts = judge_parts(read_parts(read("0", w=told("1", "1", "w"))), scored.flights, scored.book, "mixture", MARGIN)
    assert parts.verdict is Verdict.MISMATCH
    assert parts.because.startswith("the head kept the old weights")


def test_an_update_that_did_nothing_fits_the_old_weights() -> None:
    scored = cold(v1=0.3, v0=0.0)
    parts = judge_parts(None, scored.flights, scored.book, None, MARGIN)
    assert parts.verdict is Verdict.MISMATCH and parts.because == "nothing was updated: the scores fit the old weights"


def test_a_read_back_that_the_scores_contradict_shows_nothing() -> None:
    scored = cold(v1=0.0, v0=0.3)
    parts = judge_parts(read_parts(read("0", w=told("1", "1", "w"))), scored.flights, scored.book, None, MARGIN)
    assert parts.verdict is Verdict.INCONCLUSIVE


def test_scores_that_fit_nothing_are_a_mismatch_without_a_culprit() -> None:
    scored = cold(v1=0.3, v0=0.3)
    parts = judge_parts(read_parts(read(w=told("1", "1", "w"))), scored.flights, scored.book, None, MARGIN)
    assert parts.verdict is Verdict.MISMATCH and "nothing that was read explains it" in parts.because
