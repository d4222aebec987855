import pytest
from simulated_audit import findings

from rlaudit.inspection.finding import Severity
from rlaudit.rules.lost_token_window import RULE as LOST_TOKEN
from rlaudit.rules.pause_signature import RULE as PAUSE
from rlaudit.rules.prefix_cache_across_updates import RULE as ACROSS
from rlaudit.rules.prefix_caching_on import RULE as CACHING_ON
from rlaudit.rules.stale_kv_after_update import RULE as STALE

V0 = {"environment": {"VLLM_USE_V1": "0"}}
NOTHING_CLEANS = {"resets_prefix_cache": False, "salts_prefix_cache": False}
KEEP = {"weight_updates": "in flight", "pause_mode": "keep"}


def test_prefix_caching_that_v1_turns_on_by_itself_is_reported_with_a_fix_that_only_restores():
    (finding,) = findings(CACHING_ON, {"from": "0.8.5", "to": "0.18.1", "at_from": V0})
    assert finding.severity is Severity.WARNING
    assert finding.fix is not None
    assert finding.fix.safe
    assert "0.8.5 (V0)" in finding.message


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
