"""What rules say that no row of verdicts.yaml can hold: several findings at once, what a fix writes, files beside."""

from dataclasses import replace

import pytest
from simulated_audit import findings, fixed, simulated_audit

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.rules import known_rules
from rlaudit.rules.attention_backend_variable_ignored import RULE as BACKEND
from rlaudit.rules.audit.audit import audit_of
from rlaudit.rules.chunked_prefill_forced import RULE as FORCED
from rlaudit.rules.correction_hides_a_backend_mismatch import DISTORTING
from rlaudit.rules.dtype_auto_trap import RULE as DTYPE
from rlaudit.rules.engine_chosen_silently import RULE as SILENTLY
from rlaudit.rules.framework_moves_too import RULE as MOVES_TOO
from rlaudit.rules.logits_processors import RULE as PROCESSORS
from rlaudit.rules.removed_flag import RULE as REMOVED
from rlaudit.rules.removed_nested_key import RULE as NESTED
from rlaudit.rules.today_cannot_run import RULE as TODAY
from rlaudit.rules.unknown_key_ignored import RULE as UNKNOWN_KEY
from rlaudit.severity import Severity
from rlaudit.vllm.removed import ADVICE

MOVE = {"from": "0.8.5", "to": "0.18.1"}
V0 = {"VLLM_USE_V1": "0"}
TRAINER = {"divides_by_temperature": True, "uses_rollout_logprobs": True}
REFUSED = {"name": "enable_prefix_cachin", "written": True, "loss": "refused", "reason": "argparse error"}


def test_every_rule_that_a_correction_can_hide_exists():
    assert set(DISTORTING) <= set(known_rules())


def test_a_pin_that_does_not_run_with_the_new_release_is_an_error_and_the_only_one():
    pin = {"where": "requirements.txt:3", "because": "pins TRL 0.18.0"}
    ranges = {"releases": ["1.6", None], "at_from": {"releases": ["0.18", "0.24"]}}
    (finding,) = findings(MOVES_TOO, {**MOVE, **ranges, "refused_pin": pin})
    assert finding.severity is Severity.ERROR and finding.setting == "requirements.txt:3"


def test_logits_that_the_trainer_does_not_know_are_reported_one_by_one():
    sampling = {"temperature": 1.0, "logit_bias": {13: -100}, "min_tokens": 8, "bad_words": []}
    found = findings(PROCESSORS, {"to": "0.18.1", "sampling": sampling, "trainer": TRAINER})
    assert [(finding.setting, finding.severity) for finding in found] == [
        ("logit_bias", Severity.WARNING),
        ("min_tokens", Severity.NOTE),
    ]


@pytest.mark.parametrize("heat", [float("nan"), float("inf"), -1.0, 10**400, 1e300, "warm", True, [0.7]])
def test_a_temperature_that_is_none_breaks_no_rule(heat):
    example = {**MOVE, "at_from": {"environment": V0}, "engine": {"dtype": "float16"}}
    example |= {"sampling": {"temperature": heat, "top_p": heat, "repetition_penalty": heat}, "trainer": TRAINER}
    said = [one.message for rule in known_rules().values() for one in findings(rule, example)]
    assert said and not any(f"temperature of {heat}" in one for one in said)


@pytest.mark.parametrize(("before", "after"), [("0.8.5", "0.11.1"), ("0.11.0", "0.18.1")])
def test_a_false_for_chunked_prefill_that_begins_to_act_is_said_until_it_is_true(before, after):
    forced = {"environment": {"VLLM_USE_V1": "1"}}
    example = {"from": before, "to": after, "engine": {"enable_chunked_prefill": False}} | forced
    (finding,) = findings(FORCED, example)
    assert finding.severity is Severity.WARNING and finding.fix is not None and finding.fix.safe
    assert not findings(FORCED, example | {"engine": {"enable_chunked_prefill": True}})


@pytest.mark.parametrize(("written", "severity"), [("float32", Severity.WARNING), ("bfloat16", None)])
def test_a_checkpoint_that_is_here_tells_what_the_dtype_becomes(tmp_path, written, severity):
    (tmp_path / "config.json").write_text(f'{{"torch_dtype": "{written}"}}', encoding="utf-8")
    found = findings(DTYPE, {"from": "0.9.0.1", "to": "0.9.1", "model": str(tmp_path)})
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_no_more_than_three_reasons_are_said():
    many = ("logprobs_mode", "async_scheduling", "attention_backend", "optimization_level", "kv_offloading_size")
    (finding,) = findings(TODAY, {**MOVE, "engine": dict.fromkeys(many, 1)})
    assert finding.message.count(" is new in ") == 3 and "and 2 more" in finding.message


def test_an_engine_that_another_file_starts_is_only_noted():
    audit = simulated_audit(MOVE)
    elsewhere = replace(audit.before.config, engine=Elsewhere("the server is started by hand"))
    audit = audit_of(elsewhere, elsewhere, (audit.before.version, audit.after.version), audit.after.machine)
    (finding,) = SILENTLY.check(audit)
    assert finding.severity is Severity.NOTE and "started by hand" in finding.message


def test_nested_keys_are_translated_to_the_ones_that_say_the_same():
    old = {
        "level": 3,
        "full_cuda_graph": True,
        "pass_config": {"enable_fi_allreduce_fusion": False},
        "backend": "eager",
    }
    example = {"from": "0.11.0", "to": "0.18.1", "engine": {"compilation_config": old}}
    (finding,) = findings(NESTED, example)
    assert finding.severity is Severity.ERROR
    assert finding.fix is not None
    assert fixed(example, finding.fix)["engine"]["compilation_config"] == {
        "mode": 3, "cudagraph_mode": "FULL", "pass_config": {"fuse_allreduce_rms": False}, "backend": "eager",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["disable_mm_preprocessor_cache", "enable_multimodal_encoder_data_parallel", "enable_reasoning"]
)
def test_a_switch_that_was_written_as_off_is_not_told_how_to_turn_it_on(name):
    advice = ADVICE["engine", name][0]
    on, off = (findings(REMOVED, {**MOVE, "engine": {name: said}})[0] for said in (True, False))
    assert advice in on.message
    assert advice not in off.message and "off by default: leave it out" in off.message


def test_a_switch_that_was_on_by_default_and_one_with_an_exact_successor_keep_their_advice():
    (turned,) = findings(REMOVED, {"to": "0.18.1", "engine": {"disable_log_requests": False}})
    assert turned.fix is not None and "enable_log_requests" in turned.fix.description
    (text,) = findings(REMOVED, {"to": "0.18.1", "engine": {"use_v2_block_manager": False}})
    assert ADVICE["engine", "use_v2_block_manager"][0] in text.message


def test_what_stops_only_the_new_release_is_an_error_and_what_stops_both_is_doubted():
    (finding,) = UNKNOWN_KEY.check(simulated_audit({**MOVE, "lost": [REFUSED], "at_from": {"lost": []}}))
    assert finding.severity is Severity.ERROR
    assert "stops the start" in finding.message and "Did you mean enable_prefix_caching?" in finding.message
    (finding,) = UNKNOWN_KEY.check(simulated_audit({**MOVE, "lost": [REFUSED]}))
    assert finding.severity is Severity.WARNING


def test_a_backend_that_is_gone_is_not_advised():
    (finding,) = BACKEND.check(simulated_audit({**MOVE, "environment": {"VLLM_ATTENTION_BACKEND": "XFORMERS"}}))
    assert "Set attention_backend" not in finding.message and finding.fix is None
