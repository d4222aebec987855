"""Weights change while requests run, and the engine that does it is replaced by the migration.

What changed
    V0 updated weights between two steps of one loop, with its scheduler held. V1 runs the scheduler in a process of
    its own, may have a step in flight, caches prefixes and offers three kinds of pause. A port of the update code
    decides anew which tokens, keys and values belong to which policy.

Why it matters
    It is the third of the four fixes that brought PipelineRL's V1 runs back to its V0 curves. No setting shows
    whether a port is right.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        trainer: {weight_updates: in flight}
        at_from: {environment: {VLLM_USE_V1: "0"}}

    Use instead:

        trainer: {weight_updates: between rollouts}

Safe to ignore when
    the update path was compared between both versions, token by token, at equal lag.

How to confirm
    `rlaudit ablate weight-update`, with your pause and your update path in a copy of its recipe. Recipe `v0-to-v1`,
    which updates nothing, shows what the engine alone contributes.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.settings.trainer_facts import WeightUpdates
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report in-flight updates across the change from V0 to V1."""
    if not audit.migrates or audit.config.facts.weight_updates is not WeightUpdates.IN_FLIGHT:
        return
    if audit.before.is_v1 is not False or audit.after.is_v1 is not True:
        return
    message = (
        f"Weights are updated in flight, and vLLM {audit.before.version} (V0) does that in another way than "
        f"{audit.after.version} (V1). Compare tokens and logprobs around an update before training on them."
    )
    confirm = Trial(recipe="weight-update")
    yield RULE.finding(audit, Severity.NOTE, "weight_updates", message, confirm=confirm)


RULE = Rule("in-flight-update-needs-checking", Layer.INFERENCE_PATH, check)
