"""Rules about what rollouts are sampled with, and what requests may ask for."""

import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.inspection.selection import known_rules
from rlaudit.rules.generation_config_auto import RULE as GENERATION_CONFIG
from rlaudit.rules.greedy_rollouts import RULE as GREEDY
from rlaudit.rules.logits_processors import RULE as PROCESSORS
from rlaudit.rules.penalties_in_logprobs import RULE as PENALTIES
from rlaudit.rules.temperature_rounded_in_bfloat16 import RULE as ROUNDED

V0 = {"VLLM_USE_V1": "0"}
TRAINER = {"divides_by_temperature": True, "uses_rollout_logprobs": True}
COMPLETE = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


def test_what_a_request_leaves_out_comes_from_the_model():
    example = {"to": "0.18.1", "sampling": {"temperature": 1.0}, "trainer": TRAINER}
    [finding] = findings(GENERATION_CONFIG, example)
    assert finding.severity is Severity.WARNING
    assert "top_p, top_k, repetition_penalty, min_p" in finding.message
    assert "temperature" not in finding.message


def test_from_0_31_on_the_model_brings_two_more_penalties():
    complete = {"from": "0.30.0", "to": "0.31.0", "sampling": COMPLETE, "trainer": TRAINER}
    [finding] = findings(GENERATION_CONFIG, complete)
    assert "presence_penalty, frequency_penalty" in finding.message
    assert "new in 0.31.0" in finding.message
    assert finding.severity is Severity.NOTE


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


@pytest.mark.parametrize("heat, rounded", [(0.7, "0.69921875"), (0.6, "0.6015625"), (1.0, ""), (0.5, "")])
def test_v0_divides_by_what_bfloat16_makes_of_the_temperature(heat, rounded):
    example = {"from": "0.8.5", "to": "0.18.1", "engine": {"dtype": "bfloat16"}, "sampling": {"temperature": heat}}
    found = findings(ROUNDED, {**example, "at_from": {"environment": V0}})
    assert [finding.severity for finding in found] == ([Severity.NOTE] if rounded else [])
    assert all(rounded in finding.message for finding in found)
    assert findings(ROUNDED, {**example, "from": "0.18.1"}) == []


def test_logits_that_the_trainer_does_not_know_are_reported_one_by_one():
    sampling = {"temperature": 1.0, "logit_bias": {13: -100}, "min_tokens": 8, "bad_words": []}
    found = findings(PROCESSORS, {"to": "0.18.1", "sampling": sampling, "trainer": TRAINER})
    assert [(finding.setting, finding.severity) for finding in found] == [
        ("logit_bias", Severity.WARNING),
        ("min_tokens", Severity.NOTE),
    ]


@pytest.mark.parametrize("heat", [float("nan"), float("inf"), -1.0, 10**400, 1e300, "warm", True, [0.7]])
def test_a_temperature_that_is_none_breaks_no_rule(heat):
    example = {"from": "0.8.5", "to": "0.18.1", "at_from": {"environment": V0}, "engine": {"dtype": "float16"}}
    example |= {"sampling": {"temperature": heat, "top_p": heat, "repetition_penalty": heat}, "trainer": TRAINER}
    said = [one.message for rule in known_rules().values() for one in findings(rule, example)]
    assert said and not any(f"temperature of {heat}" in one for one in said)
