"""Prefix caching is on after the migration and was off before it, and nothing says which one is wanted.

What changed
    V0 left prefix caching off unless it was requested. V1 turns it on for text generation (vllm/engine/arg_utils.py,
    0.8.5:1572, 0.18.1:2098). Both declare `enable_prefix_caching = None`, so comparing declared defaults does not show
    it.

Why it matters
    A prompt that was seen before is not computed again. Its keys and values come from another batch, and after a weight
    update from another policy, unless the cache was reset. It is one of the V1-only defaults that PipelineRL had to
    turn off to get its V0 curves back.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        environment: {VLLM_USE_V1: "0"}
        at_from: {environment: {VLLM_USE_V1: "0"}}

    Use instead:

        engine: {enable_prefix_caching: false}

Safe to ignore when
    the cache is reset, or salted with the policy version, at every weight update, and training was validated with
    it.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor prefix-caching`. Recipe `v0-to-v1` has the factor, too.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.moved_default import switched_on
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.rules.audit.update_path import cleaned
from rlaudit.severity import Severity

SETTING = "enable_prefix_caching"
CONFIRM = Trial(("prefix-caching",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report what is off before, on after, and not set."""
    yield from switched_on(RULE, audit, SETTING, CONFIRM, _finding)


def _finding(audit: Audit) -> Finding:
    message = (
        f"Nothing sets {SETTING}, which {engine_of(audit.before)} leaves off and {engine_of(audit.after)} turns on. "
        "Turn prefix caching off to keep what runs today"
    )
    if cleaned(audit) is True:
        message += (
            ". Weight updates empty the prefix cache here, so nothing that old weights computed stays in it. Only the "
            "numbers of prompts are rounded differently"
        )
        severity = Severity.NOTE
    else:
        severity = Severity.WARNING
    fix = audit.fix("Keep prefix caching off, as before the migration", safe=True, enable_prefix_caching=False)
    return RULE.finding(audit, severity, SETTING, message + ".", fix, CONFIRM)


RULE = Rule("prefix-caching-on", Layer.INFERENCE_PATH, check, defaults=("enable_prefix_caching",))
