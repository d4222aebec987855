import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.async_scheduling_on import RULE as ASYNC_ON
from rlaudit.rules.batch_refused import RULE as REFUSED
from rlaudit.rules.batch_sizes_moved import RULE as BATCH_SIZES
from rlaudit.rules.cascade_attention import RULE as CASCADE
from rlaudit.rules.chunked_prefill_forced import RULE as FORCED
from rlaudit.rules.chunked_prefill_on import RULE as CHUNKED_ON
from rlaudit.rules.cudagraph_mode_changed import RULE as GRAPHS
from rlaudit.rules.optimization_level_meaning import RULE as LEVEL

V0 = {"environment": {"VLLM_USE_V1": "0"}}


def severities(rule, example):
    return [finding.severity for finding in findings(rule, example)]


@pytest.mark.parametrize(("before", "after", "reported"), [
    ("0.8.5", "0.13.0", False), ("0.8.5", "0.14.0", True), ("0.13.0", "0.18.1", True), ("0.14.0", "0.18.1", False),
])  # fmt: skip
def test_async_scheduling_is_reported_where_its_default_moved(before, after, reported):
    trained = {"trainer": {"uses_rollout_logprobs": True}}
    assert severities(ASYNC_ON, {"from": before, "to": after, **trained}) == [Severity.WARNING] * reported


def test_a_server_of_which_no_trainer_is_known_gets_a_note_about_async_scheduling():
    assert severities(ASYNC_ON, {"from": "0.13.0", "to": "0.18.1"}) == [Severity.NOTE]


def test_turning_async_scheduling_off_restores_what_a_release_without_it_did():
    (finding,) = findings(ASYNC_ON, {"from": "0.8.5", "to": "0.18.1"})
    assert finding.fix is not None
    assert finding.fix.safe
    assert "not there in" in finding.message


def test_a_cpu_never_schedules_asynchronously():
    assert not findings(ASYNC_ON, {"from": "0.13.0", "to": "0.18.1", "machine": {"platform": "cpu", "gpu": ""}})


def test_a_choice_about_async_scheduling_is_respected():
    for value in (True, False):
        assert not findings(ASYNC_ON, {"from": "0.13.0", "to": "0.18.1", "engine": {"async_scheduling": value}})


def test_chunked_prefill_that_v1_turns_on_is_a_note_with_a_fix_where_a_false_is_taken():
    short = {"from": "0.8.5", "at_from": V0, "engine": {"max_model_len": 4096}}
    (finding,) = findings(CHUNKED_ON, {"to": "0.18.1"} | short)
    assert finding.severity is Severity.NOTE
    assert finding.fix is not None
    (forced,) = findings(CHUNKED_ON, {"to": "0.11.0"} | short)
    assert forced.fix is None


def test_chunked_prefill_of_v0_without_a_context_length_is_said_to_be_open():
    (finding,) = findings(CHUNKED_ON, {"from": "0.8.5", "to": "0.18.1", "at_from": V0})
    assert finding.fix is None
    assert "cannot be told" in finding.message


@pytest.mark.parametrize(("version", "overruled"), [("0.10.2", True), ("0.11.0", True), ("0.11.1", False)])
def test_a_false_for_chunked_prefill_is_overruled_up_to_0_11_0(version, overruled):
    example = {"to": version, "engine": {"enable_chunked_prefill": False}, "environment": {"VLLM_USE_V1": "1"}}
    assert severities(FORCED, example) == [Severity.WARNING if overruled else Severity.NOTE]


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


def test_a_false_for_chunked_prefill_is_honoured_by_v0():
    example = {"to": "0.10.2", "engine": {"enable_chunked_prefill": False}, "environment": {"VLLM_USE_V1": "0"}}
    assert not findings(FORCED, example)


@pytest.mark.parametrize(("before", "after", "words"), [
    ("0.8.5", "0.10.2", "off with vLLM 0.8.5 (V0) and on with"),
    ("0.17.1", "0.18.0", "on with vLLM 0.17.1 and off with"),
])  # fmt: skip
def test_cascade_attention_is_reported_in_both_directions(before, after, words):
    example = {"from": before, "to": after, "environment": {"VLLM_USE_V1": "1"}, "at_from": V0}
    (finding,) = findings(CASCADE, example)
    assert finding.severity is Severity.NOTE
    assert words in finding.message


def test_cascade_attention_is_off_on_both_sides_from_v0_to_0_18():
    assert not findings(CASCADE, {"from": "0.8.5", "to": "0.18.1", "at_from": V0})
    assert not findings(CASCADE, {"from": "0.18.1", "to": "0.32.0"})


def test_asking_for_cascade_attention_where_there_is_none_left_is_said():
    assert severities(CASCADE, {"to": "0.32.0", "engine": {"disable_cascade_attn": False}}) == [Severity.NOTE]
    assert not findings(CASCADE, {"to": "0.32.0", "engine": {"disable_cascade_attn": True}})


def test_both_batch_sizes_are_one_note_and_a_set_one_is_left_out():
    example = {"from": "0.8.5", "to": "0.18.1", "engine": {"max_model_len": 4096}, "at_from": V0}
    (finding,) = findings(BATCH_SIZES, example)
    assert finding.severity is Severity.NOTE
    assert "max_num_batched_tokens" in finding.message
    assert "max_num_seqs" in finding.message
    (finding,) = findings(BATCH_SIZES, example | {"engine": {"max_model_len": 4096, "max_num_seqs": 64}})
    assert "max_num_seqs" not in finding.message


@pytest.mark.parametrize("example", [
    {"from": "0.10.2", "to": "0.18.1", "environment": {"VLLM_USE_V1": "1"}},
    {"from": "0.8.5", "to": "0.10.2", "environment": {"VLLM_USE_V1": "1"}, "at_from": V0},
])  # fmt: skip
def test_another_way_of_capturing_graphs_is_a_note(example):
    assert severities(GRAPHS, example) == [Severity.NOTE]


@pytest.mark.parametrize("engine", [
    {"enforce_eager": True}, {"compilation_config": {"cudagraph_mode": "PIECEWISE"}}, {"optimization_level": 1},
    {"enforce_eager": {"unknown": "$EAGER is set nowhere in this file"}},
])  # fmt: skip
def test_eager_mode_or_a_chosen_mode_captures_the_same_way(engine):
    example = {"from": "0.10.2", "to": "0.18.1", "environment": {"VLLM_USE_V1": "1"}, "engine": engine}
    assert not findings(GRAPHS, example)


@pytest.mark.parametrize(("level", "severity"), [(0, Severity.WARNING), (1, Severity.WARNING), (3, Severity.NOTE)])
def test_a_number_after_dash_o_means_another_thing_from_0_12(level, severity):
    was = {"engine": {"optimization_level": None, "compilation_config": {"level": level}}}
    example = {"from": "0.11.0", "to": "0.12.0", "engine": {"optimization_level": level}, "at_from": was}
    assert severities(LEVEL, example) == [severity]
    assert not findings(LEVEL, example | {"from": "0.12.0", "to": "0.18.1"})


def test_an_optimization_level_that_is_written_as_such_had_no_other_meaning_before():
    assert not findings(LEVEL, {"from": "0.11.0", "to": "0.12.0", "engine": {"optimization_level": 1}})


SMALL = {"max_num_batched_tokens": 4096, "max_model_len": 9216}


@pytest.mark.parametrize(("engine", "before", "after", "reported"), [
    ({**SMALL, "enable_chunked_prefill": False}, "0.8.5", "0.18.1", [Severity.ERROR]),
    ({**SMALL, "enable_chunked_prefill": False}, "0.8.5", "0.10.2", []),
    ({**SMALL, "enable_chunked_prefill": False}, "0.18.1", "0.20.0", [Severity.ERROR]),
    (SMALL, "0.8.5", "0.18.1", []),
    ({"max_num_batched_tokens": 4096, "enable_chunked_prefill": False}, "0.8.5", "0.18.1", []),
    ({"max_num_batched_tokens": 128, "max_num_seqs": 512}, "0.8.5", "0.18.1", [Severity.ERROR]),
    ({"max_num_batched_tokens": 128}, "0.8.5", "0.18.1", []),
])  # fmt: skip
def test_limits_that_contradict_each_other_are_an_error_where_the_release_refuses_them(engine, before, after, reported):
    assert severities(REFUSED, {"from": before, "to": after, "engine": engine}) == reported


def test_prompts_that_were_chunked_against_the_config_are_chunked_by_the_fix():
    example = {"from": "0.8.5", "to": "0.18.1", "engine": {**SMALL, "enable_chunked_prefill": False}}
    (finding,) = findings(REFUSED, example)
    assert finding.fix is not None and finding.fix.safe
    assert not findings(REFUSED, {**example, **V0})[0].fix
