import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.async_scheduling_on import RULE as ASYNC_ON
from rlaudit.rules.batch_sizes_moved import RULE as BATCH_SIZES
from rlaudit.rules.cascade_attention import RULE as CASCADE
from rlaudit.rules.chunked_prefill_forced import RULE as FORCED
from rlaudit.rules.chunked_prefill_on import RULE as CHUNKED_ON

V0 = {"environment": {"VLLM_USE_V1": "0"}}


def test_turning_async_scheduling_off_restores_what_a_release_without_it_did():
    (finding,) = findings(ASYNC_ON, {"from": "0.8.5", "to": "0.18.1"})
    assert finding.fix is not None
    assert finding.fix.safe
    assert "not there in" in finding.message


def test_chunked_prefill_of_v0_without_a_context_length_is_said_to_be_open():
    (finding,) = findings(CHUNKED_ON, {"from": "0.8.5", "to": "0.18.1", "at_from": V0})
    assert finding.fix is None
    assert "cannot be told" in finding.message


@pytest.mark.parametrize(("before", "after", "engine", "begins"), [
    ("0.8.5", "0.11.1", "1", True), ("0.11.0", "0.18.1", "1", True), ("0.11.1", "0.18.1", "1", False),
    ("0.8.5", "0.18.1", "0", False),
])  # fmt: skip
def test_a_false_for_chunked_prefill_that_begins_to_act_is_said(before, after, engine, begins):
    forced = {"environment": {"VLLM_USE_V1": engine}}
    example = {"from": before, "to": after, "engine": {"enable_chunked_prefill": False}} | forced
    found = findings(FORCED, example)
    assert [finding.severity for finding in found] == [Severity.WARNING if begins else Severity.NOTE]
    assert begins or "incorrect outputs" in found[0].message
    for finding in found * begins:
        assert finding.fix is not None and finding.fix.safe
        assert not findings(FORCED, example | {"engine": {"enable_chunked_prefill": True}})


@pytest.mark.parametrize(("before", "after", "words"), [
    ("0.8.5", "0.10.2", "off with vLLM 0.8.5 (V0) and on with"),
    ("0.17.1", "0.18.0", "on with vLLM 0.17.1 and off with"),
])  # fmt: skip
def test_cascade_attention_is_reported_in_both_directions(before, after, words):
    example = {"from": before, "to": after, "environment": {"VLLM_USE_V1": "1"}, "at_from": V0}
    (finding,) = findings(CASCADE, example)
    assert finding.severity is Severity.NOTE
    assert words in finding.message


def test_both_batch_sizes_are_one_note_and_a_set_one_is_left_out():
    example = {"from": "0.8.5", "to": "0.18.1", "engine": {"max_model_len": 4096}, "at_from": V0}
    (finding,) = findings(BATCH_SIZES, example)
    assert finding.severity is Severity.NOTE
    assert "max_num_batched_tokens" in finding.message
    assert "max_num_seqs" in finding.message
    (finding,) = findings(BATCH_SIZES, example | {"engine": {"max_model_len": 4096, "max_num_seqs": 64}})
    assert "max_num_seqs" not in finding.message
