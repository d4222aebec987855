import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.in_flight_update_needs_checking import RULE as IN_FLIGHT
from rlaudit.rules.lost_token_window import RULE as LOST_TOKEN
from rlaudit.rules.pause_signature import RULE as PAUSE
from rlaudit.rules.prefix_cache_across_updates import RULE as ACROSS
from rlaudit.rules.prefix_caching_on import RULE as CACHING_ON
from rlaudit.rules.reset_prefix_cache_result import RULE as RESET
from rlaudit.rules.stale_kv_after_update import RULE as STALE

V0 = {"environment": {"VLLM_USE_V1": "0"}}
NOTHING_CLEANS = {"resets_prefix_cache": False, "salts_prefix_cache": False}
KEEP = {"weight_updates": "in flight", "pause_mode": "keep"}


def severities(rule, example):
    return [finding.severity for finding in findings(rule, example)]


def test_prefix_caching_that_v1_turns_on_by_itself_is_reported_with_a_fix_that_only_restores():
    (finding,) = findings(CACHING_ON, {"from": "0.8.5", "to": "0.18.1", "at_from": V0})
    assert finding.severity is Severity.WARNING
    assert finding.fix is not None
    assert finding.fix.safe
    assert "0.8.5 (V0)" in finding.message


@pytest.mark.parametrize("value", [True, False])
def test_a_choice_about_prefix_caching_is_respected(value):
    example = {"from": "0.8.5", "to": "0.18.1", "at_from": V0, "engine": {"enable_prefix_caching": value}}
    assert not findings(CACHING_ON, example)
    assert not findings(CACHING_ON, example | {"set_by_framework": ["enable_prefix_caching"]})


def test_prefix_caching_that_was_on_before_is_no_news():
    assert not findings(CACHING_ON, {"from": "0.11.0", "to": "0.18.1"})


def test_a_cache_that_every_weight_update_cleans_makes_it_a_note():
    cleaned = {"weight_updates": "between rollouts", "resets_prefix_cache": True}
    example = {"from": "0.8.5", "to": "0.18.1", "at_from": V0, "trainer": cleaned}
    assert severities(CACHING_ON, example) == [Severity.NOTE]


def test_an_engine_that_cannot_be_told_is_said_to_be_unknown_and_not_taken_for_off():
    unknown = {"engine": {"enable_prefix_caching": {"unknown": "$CACHE is set nowhere in this file"}}}
    assert not findings(CACHING_ON, {"from": "0.8.5", "to": "0.18.1", "at_from": V0} | unknown)


def test_a_cache_that_nothing_cleans_is_an_error_whatever_the_version_was_before():
    trainer = {"weight_updates": "between rollouts", **NOTHING_CLEANS}
    assert severities(ACROSS, {"to": "0.18.1", "trainer": trainer}) == [Severity.ERROR]
    assert severities(ACROSS, {"from": "0.18.1", "to": "0.32.0", "trainer": trainer}) == [Severity.ERROR]


@pytest.mark.parametrize("fact", ["resets_prefix_cache", "salts_prefix_cache", "pause_clears_cache"])
def test_each_legitimate_way_to_keep_caching_on_is_enough(fact):
    trainer = {"weight_updates": "between rollouts", **NOTHING_CLEANS, fact: True}
    assert not findings(ACROSS, {"to": "0.18.1", "trainer": trainer})


def test_what_a_file_does_not_tell_about_cleaning_is_never_an_error():
    assert severities(ACROSS, {"to": "0.18.1", "trainer": {"weight_updates": "in flight"}}) == [Severity.NOTE]
    half = {"weight_updates": "in flight", "resets_prefix_cache": False}
    assert severities(ACROSS, {"to": "0.18.1", "trainer": half}) == [Severity.WARNING]


def test_without_weight_updates_or_without_caching_a_prefix_cache_is_fine():
    assert not findings(ACROSS, {"to": "0.18.1", "trainer": {"weight_updates": "none", **NOTHING_CLEANS}})
    assert not findings(ACROSS, {"to": "0.18.1"})
    off = {"engine": {"enable_prefix_caching": False}, "trainer": {"weight_updates": "in flight", **NOTHING_CLEANS}}
    assert not findings(ACROSS, {"to": "0.18.1"} | off)


def test_kept_requests_and_a_kept_cache_are_one_finding_with_the_pause_as_its_cause():
    example = {"to": "0.18.1", "trainer": {**KEEP, "pause_clears_cache": False, **NOTHING_CLEANS}}
    assert severities(STALE, example) == [Severity.ERROR]
    assert not findings(ACROSS, example)


def test_kept_requests_without_a_prefix_cache_are_how_in_flight_updates_work():
    trainer = {**KEEP, "pause_clears_cache": False, **NOTHING_CLEANS}
    assert not findings(STALE, {"to": "0.18.1", "engine": {"enable_prefix_caching": False}, "trainer": trainer})


@pytest.mark.parametrize(
    ("version", "lost"),
    [("0.11.2", False), ("0.12.0", True), ("0.18.1", True), ("0.21.0", True), ("0.22.0", False), ("0.32.0", False)],
)
def test_a_token_is_lost_only_in_the_releases_that_lose_it(version, lost):
    trainer = {**KEEP, "pause_clears_cache": True}
    example = {"to": version, "engine": {"async_scheduling": True}, "trainer": trainer}
    assert severities(LOST_TOKEN, example) == [Severity.ERROR] * lost


def test_no_token_is_lost_without_async_scheduling_or_with_a_cache_that_is_kept():
    off = {"to": "0.18.1", "engine": {"async_scheduling": False}, "trainer": {**KEEP, "pause_clears_cache": True}}
    assert not findings(LOST_TOKEN, off)
    kept = {"to": "0.18.1", "engine": {"async_scheduling": True}, "trainer": {**KEEP, "pause_clears_cache": False}}
    assert not findings(LOST_TOKEN, kept)


def test_a_separate_reset_under_kept_requests_may_lose_the_token_too():
    trainer = {**KEEP, "pause_clears_cache": False, "resets_prefix_cache": True}
    example = {"to": "0.18.1", "engine": {"async_scheduling": True}, "trainer": trainer}
    assert severities(LOST_TOKEN, example) == [Severity.WARNING]


@pytest.mark.parametrize(
    ("version", "arguments", "complaint"),
    [
        ("0.11.2", ["clear_cache"], "has no pause_generation"),
        ("0.15.1", ["mode", "clear_cache"], "does not take mode"),
        ("0.32.0", ["wait_for_inflight_requests"], "does not take wait_for_inflight_requests"),
    ],
)
def test_a_pause_that_this_version_does_not_take_is_an_error(version, arguments, complaint):
    (finding,) = findings(PAUSE, {"to": version, "trainer": {"pause_arguments": arguments}})
    assert finding.severity is Severity.ERROR
    assert complaint in finding.message


@pytest.mark.parametrize("version", ["0.16.0", "0.18.1", "0.28.0", "0.32.0"])
def test_a_pause_by_mode_is_taken_since_0_16(version):
    assert not findings(PAUSE, {"to": version, "trainer": {"pause_arguments": ["mode", "clear_cache"]}})


def test_native_weight_transfer_of_a_server_needs_the_development_routes():
    example = {"to": "0.18.1", "engine": {"weight_transfer_config": {"backend": "nccl"}}}
    assert severities(PAUSE, example) == [Severity.WARNING]
    assert not findings(PAUSE, example | {"environment": {"VLLM_SERVER_DEV_MODE": "1"}})
    assert not findings(PAUSE, example | {"offline": True})


def test_a_new_engine_under_in_flight_updates_is_worth_an_experiment():
    example = {"from": "0.8.5", "to": "0.18.1", "at_from": V0, "trainer": {"weight_updates": "in flight"}}
    assert severities(IN_FLIGHT, example) == [Severity.NOTE]
    assert not findings(IN_FLIGHT, example | {"from": "0.11.0", "at_from": {}})


def test_a_reset_whose_result_nobody_sees_is_a_note_until_the_route_tells_it():
    trainer = {"weight_updates": "in flight", "resets_prefix_cache": True}
    assert severities(RESET, {"to": "0.25.1", "trainer": trainer}) == [Severity.NOTE]
    assert not findings(RESET, {"to": "0.26.0", "trainer": trainer})
    assert not findings(RESET, {"to": "0.25.1", "trainer": trainer | {"weight_updates": "between rollouts"}})


OPEN = {"unknown": "releases differ"}


@pytest.mark.parametrize(
    ("rule", "engine", "trainer"),
    [
        (STALE, {}, {**KEEP, "pause_clears_cache": False, "resets_prefix_cache": OPEN, "salts_prefix_cache": OPEN}),
        (STALE, {"enable_prefix_caching": OPEN}, {**KEEP, "pause_clears_cache": False, **NOTHING_CLEANS}),
        (ACROSS, {"enable_prefix_caching": OPEN}, {"weight_updates": "in flight", **NOTHING_CLEANS}),
        (ACROSS, {}, {"weight_updates": OPEN, "resets_prefix_cache": OPEN}),
        (ACROSS, {}, {**KEEP, "pause_clears_cache": OPEN}),
        (LOST_TOKEN, {}, {**KEEP, "pause_clears_cache": OPEN}),
        (LOST_TOKEN, {"async_scheduling": OPEN}, {**KEEP, "pause_clears_cache": True}),
    ],
)
def test_what_cannot_be_told_is_an_open_danger_that_is_said_and_no_more(rule, engine, trainer):
    (finding,) = findings(rule, {"to": "0.18.1", "engine": engine, "trainer": trainer})
    assert finding.severity is Severity.NOTE
    assert "releases differ" in finding.message
