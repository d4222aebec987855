import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.batch_invariance_preconditions import RULE as PRECONDITIONS

ON = {"environment": {"VLLM_BATCH_INVARIANT": "1"}}


def said(rule, example):
    return [(finding.severity, finding.message) for finding in findings(rule, example)]


@pytest.mark.parametrize("version", ["0.12.0", "0.13.0", "0.18.1", "0.19.1"])
def test_a_release_that_wants_a_backend_does_not_start_without_one(version):
    ((severity, message),) = said(PRECONDITIONS, {"to": version} | ON)
    assert severity is Severity.ERROR
    assert "does not start" in message


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
