"""Rules about what rollouts are sampled with, and what requests may ask for."""

import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.inspection.selection import known_rules
from rlaudit.rules.flashinfer_sampler_default import RULE as FLASHINFER
from rlaudit.rules.generation_config_auto import RULE as GENERATION_CONFIG
from rlaudit.rules.greedy_rollouts import RULE as GREEDY
from rlaudit.rules.logits_processors import RULE as PROCESSORS
from rlaudit.rules.max_logprobs_too_small import RULE as MAX_LOGPROBS
from rlaudit.rules.penalties_in_logprobs import RULE as PENALTIES
from rlaudit.rules.sampling_parameter_gone import RULE as GONE
from rlaudit.rules.speculative_decoding_logprobs import RULE as SPECULATIVE
from rlaudit.rules.temperature_rounded_in_bfloat16 import RULE as ROUNDED

V0, V1 = {"VLLM_USE_V1": "0"}, {"VLLM_USE_V1": "1"}
TRAINER = {"divides_by_temperature": True, "uses_rollout_logprobs": True}
COMPLETE = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


def severities(rule, example):
    return [finding.severity for finding in findings(rule, example)]


def test_what_a_request_leaves_out_comes_from_the_model():
    example = {"to": "0.18.1", "sampling": {"temperature": 1.0}, "trainer": TRAINER}
    [finding] = findings(GENERATION_CONFIG, example)
    assert finding.severity is Severity.WARNING
    assert "top_p, top_k, repetition_penalty, min_p" in finding.message
    assert "temperature" not in finding.message


@pytest.mark.parametrize(
    "neutral",
    [
        {"engine": {"generation_config": "vllm"}},
        {"offline": True},
        {"sampling": COMPLETE},
        {"engine": {"override_generation_config": COMPLETE}},
        {
            "engine": {
                "override_generation_config": '{"temperature":1,"top_p":1,"top_k":0,"min_p":0,"repetition_penalty":1}'
            }
        },
    ],
    ids=["vllm", "in-process", "complete requests", "override", "override as JSON"],
)
def test_the_models_defaults_are_no_matter_where_something_else_decides(neutral):
    assert findings(GENERATION_CONFIG, {"to": "0.18.1", "trainer": TRAINER, **neutral}) == []


def test_from_0_31_on_the_model_brings_two_more_penalties():
    complete = {"from": "0.30.0", "to": "0.31.0", "sampling": COMPLETE, "trainer": TRAINER}
    [finding] = findings(GENERATION_CONFIG, complete)
    assert "presence_penalty, frequency_penalty" in finding.message
    assert "new in 0.31.0" in finding.message
    assert finding.severity is Severity.NOTE


def test_a_server_of_which_no_trainer_is_known_gets_a_note():
    assert severities(GENERATION_CONFIG, {"to": "0.18.1"}) == [Severity.NOTE]


def test_penalties_are_reported_whether_logprobs_show_or_hide_them():
    sampling = {"temperature": 1.0, "presence_penalty": 0.5}
    shown = {
        "to": "0.18.1",
        "engine": {"logprobs_mode": "processed_logprobs"},
        "sampling": sampling,
        "trainer": TRAINER,
    }
    [hidden] = findings(PENALTIES, {**shown, "engine": {}})
    [visible] = findings(PENALTIES, shown)
    assert "hide" in hidden.message
    assert "hide" not in visible.message
    assert findings(PENALTIES, {**shown, "sampling": COMPLETE}) == []


@pytest.mark.parametrize(
    "facts, engine, words",
    [
        ({}, {"logprobs_mode": "processed_logprobs"}, "which moves the importance ratios"),
        ({"uses_rollout_logprobs": False}, {"logprobs_mode": "processed_logprobs"}, "no ratio shows it"),
        ({"uses_rollout_logprobs": False}, {}, "no ratio shows it"),
        (
            {"recomputes_old_logprobs": True, "importance_sampling_correction": False},
            {"logprobs_mode": "processed_logprobs"},
            "moves the logged mismatch",
        ),
    ],
)
def test_a_penalty_moves_ratios_only_where_they_are_taken_with_returned_logprobs(facts, engine, words):
    sampling = {"temperature": 1.0, "repetition_penalty": 1.1}
    example = {"to": "0.18.1", "engine": engine, "sampling": sampling, "trainer": TRAINER | facts}
    [finding] = findings(PENALTIES, example)
    assert words in finding.message
    assert ("moves the importance ratios" in finding.message) == (not facts)


def test_greedy_rollouts_spoil_ratios_only_where_returned_logprobs_are_in_them():
    example = {"to": "0.18.1", "sampling": {"temperature": 0.0}, "trainer": TRAINER}
    [finding] = findings(GREEDY, example)
    [recomputed] = findings(GREEDY, {**example, "trainer": TRAINER | {"uses_rollout_logprobs": False}})
    assert "importance ratios" in finding.message and "importance ratios" not in recomputed.message


@pytest.mark.parametrize(
    "version, engine, environment, refused",
    [
        ("0.18.1", {}, {}, True),
        ("0.18.1", {"max_logprobs": 50}, {}, False),
        ("0.18.1", {"max_logprobs": -1}, {}, False),
        ("0.10.0", {"max_logprobs": -1}, V1, True),
        ("0.10.1", {"max_logprobs": -1}, V1, False),
        ("0.10.1", {"max_logprobs": -1}, V0, True),
    ],
)
def test_more_logprobs_than_granted_are_refused(version, engine, environment, refused):
    example = {"to": version, "engine": engine, "environment": environment, "sampling": {"logprobs": 50}}
    assert severities(MAX_LOGPROBS, example) == ([Severity.ERROR] if refused else [])


def test_the_sampled_tokens_logprob_is_always_granted():
    assert findings(MAX_LOGPROBS, {"to": "0.18.1", "engine": {"max_logprobs": 0}, "sampling": {"logprobs": 0}}) == []


@pytest.mark.parametrize("heat, rounded", [(0.7, "0.69921875"), (0.6, "0.6015625"), (1.0, ""), (0.5, "")])
def test_v0_divides_by_what_bfloat16_makes_of_the_temperature(heat, rounded):
    example = {"from": "0.8.5", "to": "0.18.1", "engine": {"dtype": "bfloat16"}, "sampling": {"temperature": heat}}
    found = findings(ROUNDED, {**example, "at_from": {"environment": V0}})
    assert [finding.severity for finding in found] == ([Severity.NOTE] if rounded else [])
    assert all(rounded in finding.message for finding in found)
    assert findings(ROUNDED, {**example, "from": "0.18.1"}) == []


@pytest.mark.parametrize(
    "today, to, mode, moves",
    [
        ("0.18.1", "0.21.0", None, True),
        ("0.18.1", "0.20.2", None, False),
        ("0.11.0", "0.11.1", None, True),
        ("0.18.1", "0.21.0", "processed_logprobs", False),
    ],
)
def test_the_kernel_that_samples_filtered_tokens_changes_with_these_versions(today, to, mode, moves):
    example = {"from": today, "to": to, "sampling": {"temperature": 1.0, "top_p": 0.9}}
    example["engine"] = {"logprobs_mode": mode} if mode else {}
    assert severities(FLASHINFER, example) == ([Severity.NOTE] if moves else [])
    assert findings(FLASHINFER, {**example, "sampling": {"temperature": 1.0}}) == []
    assert findings(FLASHINFER, {**example, "environment": {"VLLM_USE_FLASHINFER_SAMPLER": "0"}}) == []
    assert findings(FLASHINFER, {**example, "machine": {"platform": "cpu"}}) == []


def test_greedy_rollouts_are_reported_for_a_trainer_and_not_for_a_server_alone():
    example = {"to": "0.18.1", "sampling": {"temperature": 0}}
    assert severities(GREEDY, {**example, "trainer": TRAINER}) == [Severity.WARNING]
    assert findings(GREEDY, example) == []
    assert findings(GREEDY, {"to": "0.18.1", "sampling": {"temperature": {"unknown": "?"}}, "trainer": TRAINER}) == []


def test_logits_that_the_trainer_does_not_know_are_reported_one_by_one():
    sampling = {"temperature": 1.0, "logit_bias": {13: -100}, "min_tokens": 8, "bad_words": []}
    found = findings(PROCESSORS, {"to": "0.18.1", "sampling": sampling, "trainer": TRAINER})
    assert [(finding.setting, finding.severity) for finding in found] == [
        ("logit_bias", Severity.WARNING),
        ("min_tokens", Severity.NOTE),
    ]


@pytest.mark.parametrize(
    "sampling, to, offline, severity",
    [
        ({"best_of": 4}, "0.12.0", True, Severity.ERROR),
        ({"best_of": 4}, "0.12.0", False, Severity.WARNING),
        ({"best_of": 4}, "0.11.2", True, Severity.ERROR),
        ({"guided_json": "{}"}, "0.12.0", False, Severity.WARNING),
        ({"truncate_prompt_tokens": 512}, "0.17.0", True, Severity.ERROR),
        ({"truncate_prompt_tokens": 512}, "0.16.0", True, None),
        ({"best_of": None}, "0.18.1", True, Severity.ERROR),
        ({"best_of": None}, "0.18.1", False, None),
        ({"best_of": None}, "0.11.2", True, None),
        ({"guided_decoding": {"unknown": "a class"}}, "0.18.1", True, Severity.ERROR),
        ({"guided_decoding": {"unknown": "a class"}}, "0.18.1", False, Severity.WARNING),
        ({"logits_processors": {"unknown": "a function"}}, "0.18.1", True, Severity.ERROR),
        ({"logits_processors": {"unknown": "a function"}}, "0.16.0", True, Severity.WARNING),
        ({"max_new_tokens": 5}, "0.18.1", True, None),
    ],
)
def test_sampling_parameters_that_are_gone_or_refused(sampling, to, offline, severity):
    example = {"from": "0.10.2", "to": to, "offline": offline, "sampling": sampling}
    assert severities(GONE, example) == ([severity] if severity else [])


def test_a_null_that_a_framework_may_leave_out_is_no_removed_parameter():
    example = {"to": "0.18.1", "offline": True, "sampling": {"best_of": None}, "trainer": TRAINER}
    assert severities(GONE, example) == []


def test_a_null_in_a_call_of_vllm_itself_stops_though_its_trainer_is_known():
    example = {"to": "0.18.1", "offline": True, "sampling": {"best_of": None}, "trainer": TRAINER}
    assert severities(GONE, {**example, "framework": "vllm-python"}) == [Severity.ERROR]


def test_drafts_begin_to_act_on_requests_with_logprobs_in_0_14():
    example = {"engine": {"speculative_config": {"method": "ngram"}}, "sampling": {"logprobs": 0}, "trainer": TRAINER}
    assert severities(SPECULATIVE, {"from": "0.13.0", "to": "0.14.0", **example}) == [Severity.WARNING]
    assert severities(SPECULATIVE, {"from": "0.12.0", "to": "0.13.0", **example}) == [Severity.NOTE]
    assert severities(SPECULATIVE, {"from": "0.18.1", "to": "0.20.2", **example}) == [Severity.NOTE]
    assert findings(SPECULATIVE, {"from": "0.13.0", "to": "0.14.0", **example, "engine": {}}) == []


@pytest.mark.parametrize("heat", [float("nan"), float("inf"), -1.0, 10**400, 1e300, "warm", True, [0.7]])
def test_a_temperature_that_is_none_breaks_no_rule(heat):
    example = {"from": "0.8.5", "to": "0.18.1", "at_from": {"environment": V0}, "engine": {"dtype": "float16"}}
    example |= {"sampling": {"temperature": heat, "top_p": heat, "repetition_penalty": heat}, "trainer": TRAINER}
    said = [one.message for rule in known_rules().values() for one in findings(rule, example)]
    assert said and not any(f"temperature of {heat}" in one for one in said)
