"""Async scheduling is on after the migration and was off before it, and nothing says which one is wanted.

What changed
    0.10.0 brought `async_scheduling`, off by default. From 0.14.0 on the default is None, which turns it on if the
    executor supports it (0.18.1 vllm/config/vllm.py:713-773). V0 had nothing like it.

Why it matters
    The next step is scheduled before the tokens of the last one are known. Preemption, pauses and weight updates then
    happen while a step runs, and several releases lost or repeated tokens (vllm#42043, #38624, #47900,
    #49620).
    PipelineRL turned async scheduling off to get its V0 curves back.

Example
    Reported:

        from: 0.13.0
        to: 0.18.1

    Use instead:

        engine: {async_scheduling: false}

Safe to ignore when
    no weights change while requests run, and nothing is preempted or paused.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor async-scheduling` on a GPU, as it is off on a CPU. Recipe `v0-to-v1`
    tries this factor, too.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import switched_on
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity

SETTING = "async_scheduling"
CONFIRM = Trial(("async-scheduling",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report what is off or absent before, on after, and not set."""
    yield from switched_on(RULE, audit, SETTING, CONFIRM, _finding)


def _finding(audit: Audit) -> Finding:
    was = "leaves off" if audit.before.exists(SETTING) else "does not have"
    message = (
        f"Nothing sets {SETTING}, which {engine_of(audit.before)} {was} and {engine_of(audit.after)} turns on. "
        "Turn async scheduling off to keep what runs today."
    )
    fix = audit.fix("Keep async scheduling off, as before the migration", safe=True, async_scheduling=False)
    # A plain server without a trainer's facts may not serve rollouts at all.
    severity = Severity.WARNING if audit.config.has_trainer else Severity.NOTE
    return RULE.finding(audit, severity, SETTING, message, fix, CONFIRM)


RULE = Rule("async-scheduling-on", Layer.INFERENCE_PATH, check, defaults=("async_scheduling",))
