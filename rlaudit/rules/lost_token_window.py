"""In this release a weight update that keeps requests and clears the cache loses one token per request.

What changed
    From 0.12.0 to 0.21.0, clearing the cache under running requests preempts them and marks the token in flight as
    to be discarded. With async scheduling the mark outlives the pause and drops the first token after it
    (vllm#42043, `discard_latest_async_tokens` in vllm/v1/core/sched/scheduler.py). 0.22.0 counts placeholders
    instead.

Why it matters
    A token was sampled and its effect is in the cache, but neither its id nor its logprob reaches the trainer.
    Everything after it is conditioned on something that the trainer does not see.

Example
    Reported:

        to: 0.18.1
        trainer: {weight_updates: in flight, pause_mode: keep, pause_clears_cache: true}

    Use instead:

        engine: {async_scheduling: false}

Safe to ignore when
    the build carries the fix of vllm#42043.

How to confirm
    `rlaudit ablate weight-update` on a GPU, with `async_scheduling: [on, off]` under its engine. It says whether tokens
    after the resume follow from those before.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.advisories import known_advisories
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import restores
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown

SETTING = "async_scheduling"
CONFIRM = Trial(
    recipe="weight-update", look="write async_scheduling: [on, off] into a copy of the recipe, and run that"
)


def check(audit: Audit) -> Iterator[Finding]:
    """Report keep with a cache cleared under running requests and async scheduling, in a release of the window."""
    facts, scheduling, unsure = audit.config.facts, audit.after.value(SETTING), ""
    clears = facts.pause_clears_cache
    window = known_advisories()[RULE.name].window
    if not window.holds(audit.after.version) or facts.pause_mode is not PauseMode.KEEP:
        return
    if scheduling is not True and not isinstance(scheduling, Unknown):
        return
    if clears is True:
        severity, how = Severity.ERROR, "pause_generation(mode=keep, clear_cache=True)"
    elif facts.resets_prefix_cache is True:
        # Only reset_running_requests=True can clear a cache in use; without it the reset fails instead.
        severity, how = Severity.WARNING, "Resetting the prefix cache while kept requests are paused"
    elif isinstance(clears, Unknown):
        severity, how = Severity.NOTE, f"pause_generation(mode=keep), if it clears the cache ({clears.reason}),"
    else:
        return
    if isinstance(scheduling, Unknown):
        severity, unsure = Severity.NOTE, f" (it is not known whether async scheduling is on: {scheduling.reason})"
    message = (
        f"{how} with async scheduling{unsure} loses the first token of every request after a weight update in "
        f"{audit.after.version} (0.12.0 to 0.21.0). Set async_scheduling to false, or move to 0.22.0."
    )
    fix = audit.fix("Turn async scheduling off", restores(audit, SETTING, False), async_scheduling=False)
    yield RULE.finding(audit, severity, SETTING, message, fix, CONFIRM)


RULE = Rule("lost-token-window", Layer.INFERENCE_PATH, check)
