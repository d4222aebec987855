"""The engine was seen to sample from other weights than its updates sent.

What changed
    vLLM rebuilt its update path several times: `reload_weights` came with 0.10.0, pauses with 0.12.0 and layerwise
    reload with 0.16.0. A trainer's own update code reaches into private parts of the engine that each of them moved.

Why it matters
    Rollouts come from an older policy, or from a mixture of two, while the trainer counts them as its own. Nothing
    raises an error: ratios drift a little further with every step. After sleep at level 2 without an update they come
    from what happens to be in memory (trl#5312).

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        trainer: {weight_faults: [stayed as they were in 3 of 3 updates that sent other values]}

    Use instead:

        trainer: {weight_faults: []}

Safe to ignore when
    The tensor that is named is meant to stay: it is frozen in the engine and replaced by the program itself.

How to confirm
    After one update, compare a logprob of the same prompt in the engine with the trainer's own.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report an error for each fault, which was read from the engine's memory."""
    faults = audit.config.facts.weight_faults
    for fault in faults if isinstance(faults, list) else ():
        yield RULE.finding(audit, Severity.ERROR, "weight_faults", f"The engine's weights {fault}.")


RULE = Rule("weights-not-as-sent", Layer.INFERENCE_PATH, check)
