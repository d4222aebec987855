from dataclasses import replace

import pytest
from simulated_audit import findings, fixed, simulated_audit

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.inspection.audit import audit_of
from rlaudit.inspection.finding import Severity
from rlaudit.rules.attention_backend_variable_ignored import RULE as BACKEND
from rlaudit.rules.engine_chosen_silently import RULE as SILENTLY
from rlaudit.rules.engine_variable_ignored import RULE as ENGINE
from rlaudit.rules.fuse_allreduce_rms import RULE as FUSED
from rlaudit.rules.removed_flag import RULE as REMOVED
from rlaudit.rules.removed_nested_key import RULE as NESTED
from rlaudit.rules.unknown_key_ignored import RULE as UNKNOWN_KEY
from rlaudit.rules.written_false_dropped import RULE as FALSE_DROPPED
from rlaudit.vllm.removed import ADVICE


def severities(rule, example):
    return [finding.severity for finding in findings(rule, example)]


def lost(name, written, loss):
    return {"lost": [{"name": name, "written": written, "loss": loss, "reason": "for a test"}]}


def test_asking_for_v0_where_there_is_none_is_an_error_once_v0_really_ran():
    asked = {"environment": {"VLLM_USE_V1": "0"}}
    assert severities(ENGINE, {"from": "0.8.5", "to": "0.18.1"} | asked) == [Severity.ERROR]
    assert severities(ENGINE, {"from": "0.11.1", "to": "0.18.1"} | asked) == [Severity.WARNING]
    (finding,) = findings(ENGINE, {"to": "0.11.0"} | asked)
    assert finding.severity is Severity.ERROR
    assert "refuses to start" in finding.message
    assert not findings(ENGINE, {"to": "0.10.2"} | asked)


def test_an_engine_that_nobody_chose_is_named():
    (finding,) = findings(SILENTLY, {"from": "0.8.5", "to": "0.18.1", "engine": {"scheduling_policy": "priority"}})
    assert "V0 runs" in finding.message
    assert not findings(SILENTLY, {"from": "0.8.5", "to": "0.18.1", "environment": {"VLLM_USE_V1": "0"}})
    assert not findings(SILENTLY, {"from": "0.11.0", "to": "0.18.1"})


def test_an_engine_that_another_file_starts_is_only_noted():
    audit = simulated_audit({"from": "0.8.5", "to": "0.18.1"})
    elsewhere = replace(audit.before.config, engine=Elsewhere("the server is started by hand"))
    audit = audit_of(elsewhere, elsewhere, (audit.before.version, audit.after.version), audit.after.machine)
    (finding,) = SILENTLY.check(audit)
    assert finding.severity is Severity.NOTE and "started by hand" in finding.message


@pytest.mark.parametrize(("name", "severity"), [
    ("enable_prefix_caching", Severity.ERROR),
    ("enable_sleep_mode", Severity.NOTE),
])  # fmt: skip
def test_a_dropped_false_is_as_bad_as_the_default_that_runs_instead(name, severity):
    assert severities(FALSE_DROPPED, {"to": "0.18.1"} | lost(name, False, "false dropped")) == [severity]


def test_only_a_dropped_false_is_called_one():
    assert not findings(FALSE_DROPPED, {"to": "0.18.1"} | lost("enable_prefix_caching", False, "overruled"))
    assert not findings(UNKNOWN_KEY, {"to": "0.18.1"} | lost("enable_prefix_caching", False, "false dropped"))


@pytest.mark.parametrize(("name", "written", "loss", "severity"), [
    ("enable_prefx_caching", False, "unknown key", Severity.WARNING),
    ("enable_chunked_prefill", False, "not passed on", Severity.WARNING),
    ("enable_chunked_prefill", True, "not passed on", Severity.NOTE),
    ("enable_chunked_prefill", False, "overruled", Severity.NOTE),
])  # fmt: skip
def test_a_key_without_effect_is_weighed_by_what_runs_instead(name, written, loss, severity):
    assert severities(UNKNOWN_KEY, {"to": "0.18.1"} | lost(name, written, loss)) == [severity]


def test_a_misspelt_key_is_told_its_neighbour():
    (finding,) = findings(UNKNOWN_KEY, {"to": "0.18.1"} | lost("enable_prefx_caching", False, "unknown key"))
    assert "did you mean enable_prefix_caching?" in finding.message


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


def test_a_nested_key_is_ignored_in_silence_until_configs_forbid_strange_ones():
    example = {"to": "0.12.0", "engine": {"compilation_config": {"use_cudagraph": False}}}
    (finding,) = findings(NESTED, example)
    assert finding.severity is Severity.WARNING
    assert "ignored" in finding.message
    assert severities(NESTED, example | {"to": "0.13.0"}) == [Severity.ERROR]
    assert not findings(NESTED, example | {"to": "0.11.0"})


def test_a_removed_argument_does_not_start():
    (finding,) = findings(REMOVED, {"from": "0.8.5", "to": "0.18.1", "engine": {"swap_space": 4}})
    assert finding.severity is Severity.ERROR
    assert finding.setting == "swap_space"
    assert not findings(REMOVED, {"from": "0.8.5", "to": "0.17.1", "engine": {"swap_space": 4}})


OFF = ["disable_mm_preprocessor_cache", "enable_multimodal_encoder_data_parallel", "enable_reasoning"]


@pytest.mark.parametrize("name", OFF)
def test_a_switch_that_was_written_as_off_is_not_told_how_to_turn_it_on(name):
    advice = ADVICE["engine", name][0]
    on, off = (
        findings(REMOVED, {"from": "0.8.5", "to": "0.18.1", "engine": {name: said}})[0] for said in (True, False)
    )
    assert advice in on.message
    assert advice not in off.message and "off by default: leave it out" in off.message


def test_a_switch_that_was_on_by_default_and_one_with_an_exact_successor_keep_their_advice():
    (turned,) = findings(REMOVED, {"to": "0.18.1", "engine": {"disable_log_requests": False}})
    assert turned.fix is not None and "enable_log_requests" in turned.fix.description
    (text,) = findings(REMOVED, {"to": "0.18.1", "engine": {"use_v2_block_manager": False}})
    assert ADVICE["engine", "use_v2_block_manager"][0] in text.message


def test_an_argument_that_came_later_is_told_its_release():
    (finding,) = findings(REMOVED, {"to": "0.8.5", "engine": {"async_scheduling": False}})
    assert finding.severity is Severity.ERROR
    assert "0.10.0" in finding.message


def test_an_argument_of_no_release_is_a_warning_with_a_guess():
    (finding,) = findings(REMOVED, {"to": "0.18.1", "engine": {"enable_prefx_caching": False}})
    assert finding.severity is Severity.WARNING
    assert "enable_prefix_caching" in finding.message


REFUSED = {"name": "enable_prefix_cachin", "written": True, "loss": "refused", "reason": "argparse error"}


def test_what_stops_only_the_new_release_is_an_error_and_what_stops_both_is_doubted():
    new = {"from": "0.8.5", "to": "0.18.1", "lost": [REFUSED], "at_from": {"lost": []}}
    (finding,) = UNKNOWN_KEY.check(simulated_audit(new))
    assert finding.severity is Severity.ERROR
    assert "stops the start" in finding.message and "did you mean enable_prefix_caching?" in finding.message
    (finding,) = UNKNOWN_KEY.check(simulated_audit({"from": "0.8.5", "to": "0.18.1", "lost": [REFUSED]}))
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(("ranks", "fused"), [(2, 1), (4, 1), (8, 1), (3, 0), (16, 0)])
def test_all_reduce_is_fused_for_the_ranks_that_the_kernel_takes(ranks, fused):
    example = {"from": "0.16.0", "to": "0.18.1", "engine": {"tensor_parallel_size": ranks}}
    assert len(list(FUSED.check(simulated_audit(example)))) == fused


def test_a_backend_that_is_gone_is_not_advised():
    example = {"from": "0.8.5", "to": "0.18.1", "environment": {"VLLM_ATTENTION_BACKEND": "XFORMERS"}}
    (finding,) = BACKEND.check(simulated_audit(example))
    assert "Set attention_backend" not in finding.message and finding.fix is None
