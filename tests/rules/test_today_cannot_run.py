"""A release that cannot have run what it is said to run today."""

from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.today_cannot_run import RULE

MOVE = {"from": "0.8.5", "to": "0.18.1"}
PIN = {"where": "requirements.txt:3", "because": "pins TRL 1.6.0"}


def told(**example):
    return [(one.severity, one.message) for one in findings(RULE, MOVE | example)]


def test_an_argument_that_came_later_is_a_note_as_the_config_may_be_prepared():
    ((severity, message),) = told(engine={"logprobs_mode": "processed_logprobs"})
    assert severity is Severity.NOTE and "logprobs_mode came with 0.10.0" in message
    assert not told(engine={"logprobs_mode": None})
    assert not findings(RULE, {"from": "0.10.2", "to": "0.18.1", "engine": {"logprobs_mode": "processed_logprobs"}})


def test_a_pin_that_does_not_run_today_alone_is_a_warning():
    ((severity, message),) = told(at_from={"refused_pin": PIN})
    assert severity is Severity.WARNING and "requirements.txt:3 pins" in message
    assert not told(refused_pin=PIN, at_from={"refused_pin": PIN})


def test_external_launcher_needed_a_seed():
    launched = {"engine": {"distributed_executor_backend": "external_launcher"}}
    ((severity, message),) = told(**launched)
    assert severity is Severity.WARNING and "needs a seed" in message
    assert not told(engine=launched["engine"] | {"seed": 3})
    assert not findings(RULE, {"from": "0.9.2", "to": "0.18.1"} | launched)  # V1 seeds with 0


def test_no_more_than_three_reasons_are_said():
    many = ("logprobs_mode", "async_scheduling", "attention_backend", "optimization_level", "kv_offloading_size")
    ((_, message),) = told(engine=dict.fromkeys(many, 1))
    assert message.count(" came with ") == 3 and "and 2 more" in message
