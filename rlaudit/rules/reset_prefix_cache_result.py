"""The prefix cache is reset while requests run, and this version does not report over HTTP whether that worked.

What changed
    V1 refuses to reset a prefix cache while any block is in use: `reset_prefix_cache()` returns False. The HTTP
    route answered 200 either way until 0.26.0, which returns `{"success": ...}` (vllm#46893). From 0.12.0
    `reset_running_requests=True` preempts what runs, so that the reset succeeds.

Why it matters
    A reset that failed looks like one that succeeded, and prompts of the next rollout are continued from keys and
    values of the old weights (SkyRL#1824).

Example
    Reported:

        to: 0.18.1
        trainer: {weight_updates: in flight, resets_prefix_cache: true}

    Use instead:

        to: 0.26.0

Safe to ignore when
    requests are drained first, or the result of the call is checked in process.

How to confirm
    Look for the engine's warning that the reset failed; `rlaudit ablate` with factor `prefix-caching` shows what
    caching costs at all.
"""

from collections.abc import Iterator

from rlaudit.advisories import known_advisories
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity
from rlaudit.layers import Layer


def check(audit: Audit) -> Iterator[Finding]:
    """Report a reset with requests in flight, before the route tells its result."""
    says = audit.config.says
    window = known_advisories()[RULE.name].window
    if audit.after.value("enable_prefix_caching") is not True or not window.holds(audit.after.version):
        return
    if says("weight_updates") != "in flight" or says("resets_prefix_cache") is not True:
        return
    if says("pause_clears_cache") is True or says("salts_prefix_cache") is True:
        return
    message = (
        f"The prefix cache is reset while requests may run; vLLM {audit.after.version} refuses that and answers 200 "
        "over HTTP all the same. Pass reset_running_requests=True (0.12.0 on), or check the result in process."
    )
    confirm = "rlaudit ablate, factor prefix-caching"
    yield RULE.finding(audit, Severity.NOTE, "resets_prefix_cache", message, confirm=confirm)


RULE = Rule("reset-prefix-cache-result", Layer.INFERENCE_PATH, check)
