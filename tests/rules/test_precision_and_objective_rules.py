"""Rules about head and body precision, and about what the objective may and may not correct."""

import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.inspection.selection import known_rules
from rlaudit.rules.correction_hides_a_backend_mismatch import DISTORTING
from rlaudit.rules.correction_hides_a_backend_mismatch import RULE as CORRECTION
from rlaudit.rules.correction_off_and_metric_absent import RULE as METRIC_ABSENT
from rlaudit.rules.half_precision_head import RULE as HALF_HEAD
from rlaudit.rules.head_dtype_ignored import RULE as HEAD_IGNORED
from rlaudit.rules.one_sided_fp32_head import RULE as ONE_SIDED
from rlaudit.rules.quantized_rollout import RULE as QUANTIZED

V0 = {"environment": {"VLLM_USE_V1": "0"}}
FLOAT32_HEAD = {"hf_overrides": {"head_dtype": "float32"}}


def severities(rule, example):
    return [finding.severity for finding in findings(rule, example)]


@pytest.mark.parametrize("overrides", [{"head_dtype": "float32"}, '{"head_dtype": "float32"}'])
def test_a_head_dtype_is_ignored_before_0_26(overrides):
    example = {"engine": {"dtype": "bfloat16", "hf_overrides": overrides}}
    assert severities(HEAD_IGNORED, {"to": "0.25.1", **example}) == [Severity.ERROR]
    assert findings(HEAD_IGNORED, {"to": "0.26.0", **example}) == []
    assert severities(HEAD_IGNORED, {"from": "0.25.1", "to": "0.26.0", **example}) == [Severity.NOTE]


def test_a_head_dtype_that_the_model_has_anyway_is_not_ignored():
    assert findings(HEAD_IGNORED, {"to": "0.18.1", "engine": {**FLOAT32_HEAD, "dtype": "float32"}}) == []
    plug_in = {"to": "0.18.1", "engine": FLOAT32_HEAD, "trainer": {"rollout_head_dtype": "float32"}}
    assert findings(HEAD_IGNORED, plug_in) == []


@pytest.mark.parametrize(
    "version, engine, trainer, severity",
    [
        ("0.26.0", {}, {"head_dtype": "float32"}, Severity.WARNING),
        ("0.26.0", FLOAT32_HEAD, {"head_dtype": "float32"}, None),
        ("0.18.1", FLOAT32_HEAD, {"head_dtype": "float32"}, Severity.WARNING),
        ("0.18.1", {}, {"head_dtype": "float32", "rollout_head_dtype": "float32"}, None),
        ("0.26.0", FLOAT32_HEAD, {"dtype": "bfloat16"}, Severity.WARNING),
        ("0.26.0", FLOAT32_HEAD, {}, Severity.NOTE),
        ("0.26.0", {"dtype": "bfloat16"}, {"dtype": "bfloat16"}, None),
        ("0.26.0", {"dtype": "float32"}, {"head_dtype": "float32"}, None),
        ("0.26.0", {"dtype": {"unknown": "$DTYPE"}}, {"head_dtype": "float32"}, Severity.NOTE),
    ],
)
def test_a_float32_head_belongs_on_both_sides_or_on_none(version, engine, trainer, severity):
    found = severities(ONE_SIDED, {"to": version, "engine": engine, "trainer": trainer})
    assert found == ([severity] if severity else [])


def test_the_heads_fix_is_offered_only_where_vllm_honours_it_and_nothing_else_is_overridden():
    trainer = {"trainer": {"head_dtype": "float32"}}
    [native] = findings(ONE_SIDED, {"to": "0.26.0", **trainer})
    [before] = findings(ONE_SIDED, {"to": "0.25.1", **trainer})
    [others] = findings(ONE_SIDED, {"to": "0.26.0", **trainer, "engine": {"hf_overrides": {"rope_theta": 1}}})
    assert (native.fix is None, before.fix, others.fix) == (False, None, None)


def test_two_short_heads_are_a_note_when_the_engine_changes_and_only_then():
    trainer = {"trainer": {"dtype": "bfloat16", "uses_rollout_logprobs": True}}
    assert severities(HALF_HEAD, {"from": "0.8.5", "to": "0.18.1", "at_from": V0, **trainer}) == [Severity.NOTE]
    assert findings(HALF_HEAD, {"from": "0.18.1", "to": "0.32.0", **trainer}) == []


@pytest.mark.parametrize(
    "engine, trainer, severity",
    [
        ({"quantization": "fp8"}, {"dtype": "bfloat16"}, Severity.WARNING),
        ({"kv_cache_dtype": "fp8_e4m3"}, {"dtype": "bfloat16"}, Severity.WARNING),
        ({"quantization": "fp8"}, {"importance_sampling_correction": True}, Severity.NOTE),
        ({"quantization": "fp8"}, {}, Severity.NOTE),
        ({"quantization": "bf16_last_layer_fp32"}, {"rollout_head_dtype": "float32"}, None),
        ({"kv_cache_dtype": "auto"}, {"dtype": "bfloat16"}, None),
        ({}, {"dtype": "bfloat16"}, None),
    ],
)
def test_quantized_rollouts_are_told_apart_from_a_plug_in_that_raises_precision(engine, trainer, severity):
    found = severities(QUANTIZED, {"to": "0.18.1", "engine": engine, "trainer": trainer})
    assert found == ([severity] if severity else [])


def test_a_correction_over_a_semantic_error_names_the_rule_to_resolve_first():
    trainer = {"divides_by_temperature": True, "uses_rollout_logprobs": True, "importance_sampling_correction": True}
    example = {"to": "0.18.1", "sampling": {"temperature": 0.7}, "trainer": trainer}
    [finding] = findings(CORRECTION, example)
    assert finding.severity is Severity.WARNING
    assert "raw-logprobs" in finding.message


def test_a_correction_is_no_finding_over_an_error_that_only_stops_the_run():
    trainer = {"importance_sampling_correction": True, "uses_rollout_logprobs": True}
    refused = {"to": "0.18.1", "sampling": {"temperature": 1.0, "logprobs": 50}, "trainer": trainer}
    assert findings(CORRECTION, refused) == []


def test_every_rule_that_a_correction_can_hide_exists():
    assert set(DISTORTING) <= set(known_rules())


def test_a_correction_is_no_finding_where_earlier_layers_have_no_error():
    trainer = {"divides_by_temperature": True, "uses_rollout_logprobs": True, "importance_sampling_correction": True}
    latent = {"to": "0.18.1", "sampling": {"temperature": 1.0}, "trainer": trainer}
    off = {**latent, "sampling": {"temperature": 0.7}, "trainer": {**trainer, "importance_sampling_correction": False}}
    assert findings(CORRECTION, latent) == []
    assert findings(CORRECTION, off) == []


def test_an_absent_metric_is_unknown_and_weighs_more_when_migrating():
    trainer = {"trainer": {"logs_mismatch": False}}
    assert severities(METRIC_ABSENT, {"to": "0.18.1", **trainer}) == [Severity.NOTE]
    assert severities(METRIC_ABSENT, {"from": "0.8.5", "to": "0.18.1", **trainer}) == [Severity.WARNING]
    assert findings(METRIC_ABSENT, {"to": "0.18.1", "trainer": {"logs_mismatch": True}}) == []
    assert findings(METRIC_ABSENT, {"to": "0.18.1"}) == []
