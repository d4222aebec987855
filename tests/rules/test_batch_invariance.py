import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.batch_invariance_nccl import RULE as NCCL
from rlaudit.rules.batch_invariance_preconditions import RULE as PRECONDITIONS

ON = {"environment": {"VLLM_BATCH_INVARIANT": "1"}}


def said(rule, example):
    return [(finding.severity, finding.message) for finding in findings(rule, example)]


@pytest.mark.parametrize("version", ["0.12.0", "0.13.0", "0.18.1", "0.19.1"])
def test_a_release_that_wants_a_backend_does_not_start_without_one(version):
    ((severity, message),) = said(PRECONDITIONS, {"to": version} | ON)
    assert severity is Severity.ERROR
    assert "does not start" in message


@pytest.mark.parametrize("version", ["0.11.1", "0.20.0", "0.32.0"])
def test_a_release_that_chooses_the_backend_itself_needs_nothing(version):
    assert not findings(PRECONDITIONS, {"to": version} | ON)


@pytest.mark.parametrize(
    "engine", [{"attention_backend": "FLASH_ATTN"}, {"attention_config": {"backend": "FLASH_ATTN"}}]
)
def test_a_chosen_backend_is_enough_however_it_is_chosen(engine):
    assert not findings(PRECONDITIONS, {"to": "0.18.1", "engine": engine} | ON)


def test_the_variable_counts_as_a_choice_only_where_it_is_read():
    chosen = {"environment": {"VLLM_BATCH_INVARIANT": "1", "VLLM_ATTENTION_BACKEND": "FLASH_ATTN"}}
    assert not findings(PRECONDITIONS, {"to": "0.12.0"} | chosen)
    assert findings(PRECONDITIONS, {"to": "0.18.1"} | chosen)


def test_a_backend_that_lost_its_invariance_is_named():
    example = {"engine": {"attention_backend": "FLASHINFER"}} | ON
    assert not findings(PRECONDITIONS, {"to": "0.15.1"} | example)
    ((severity, message),) = said(PRECONDITIONS, {"to": "0.16.0"} | example)
    assert severity is Severity.ERROR
    assert "FLASHINFER" in message


def test_a_cpu_cannot_do_it():
    ((severity, message),) = said(PRECONDITIONS, {"to": "0.32.0", "machine": {"platform": "cpu"}} | ON)
    assert severity is Severity.ERROR
    assert "CPU" in message


def test_a_release_without_it_ignores_it():
    assert [severity for severity, _ in said(PRECONDITIONS, {"to": "0.10.2"} | ON)] == [Severity.WARNING]


@pytest.mark.parametrize("value", ["0", "false", "", {"unknown": "$BI is set nowhere in this file"}])
def test_what_is_not_a_number_other_than_zero_does_not_ask_for_it(value):
    assert not findings(PRECONDITIONS, {"to": "0.18.1", "environment": {"VLLM_BATCH_INVARIANT": value}})


def test_an_unregistered_variable_meets_the_check_of_variables():
    engine = {"attention_backend": "FLASH_ATTN", "fail_on_environ_validation": True}
    assert [severity for severity, _ in said(PRECONDITIONS, {"to": "0.18.1", "engine": engine} | ON)] == [
        Severity.ERROR
    ]
    assert not findings(PRECONDITIONS, {"to": "0.19.0", "engine": engine} | ON)


def test_pinned_nccl_is_a_warning_where_weights_are_known_to_take_it_and_a_note_where_they_may():
    engine = {"weight_transfer_config": {"backend": "nccl"}}
    assert [severity for severity, _ in said(NCCL, {"to": "0.18.1", "engine": engine} | ON)] == [Severity.WARNING]
    updates = {"trainer": {"weight_updates": "in flight"}}
    assert [severity for severity, _ in said(NCCL, {"to": "0.18.1"} | updates | ON)] == [Severity.NOTE]
    assert not findings(NCCL, {"to": "0.18.1"} | updates)
    assert not findings(NCCL, {"to": "0.18.1"} | ON)
