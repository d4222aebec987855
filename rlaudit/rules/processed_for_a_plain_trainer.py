"""The engine returns logprobs at the sampling temperature, and the trainer computes them at temperature 1.

What changed
    V0 always returns logprobs after temperature, and `processed_logprobs` does so in V1 from 0.10.2 on. A trainer
    that does not divide its logits by the temperature (ROLL's does not) agrees with raw logprobs, V1's default.

Why it matters
    Log p at T is compared with log p at 1. Ratios differ from 1 although both sides hold the same weights; mismatch
    metrics and importance corrections then measure the temperature. With raw logprobs the metrics look clean, but the
    tokens are still drawn at another temperature than the trainer's. Dividing in the trainer is the better fix.

Example
    Reported:

        to: 0.18.1
        engine: {logprobs_mode: processed_logprobs}
        sampling: {temperature: 0.7}
        trainer: {divides_by_temperature: false, uses_rollout_logprobs: true}

    Use instead:

        engine: {logprobs_mode: raw_logprobs}

Safe to ignore when
    The difference is wanted: the importance weight is meant to carry rollouts at T over to a policy at 1.

How to confirm
    Write `trainer: {temperature: ignore}` into a copy of recipe `v0-to-v1`, run `rlaudit ablate COPY`, and look at
    factor `logprobs-mode`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import Returned, engine_of, returned_logprobs
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import is_greedy, temperature
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


def check(audit: Audit) -> Iterator[Finding]:
    """Report processed logprobs against a trainer that computes plain ones."""
    side, facts = audit.after, audit.config.facts
    if facts.divides_by_temperature is not False or facts.uses_rollout_logprobs is False:
        return
    if returned_logprobs(side) is not Returned.PROCESSED or is_greedy(side):
        return
    heat = temperature(side)
    if heat == 1:
        return
    at = f"a temperature that this file does not say ({heat.reason})" if isinstance(heat, Unknown) else f"T={heat:g}"
    message = (
        f"{engine_of(side)} returns logprobs at {at}, and the trainer does not divide its logits by that temperature."
    )
    if side.is_v1 is False:
        remedy = "Divide by the temperature in the trainer; V0 has no raw logprobs."
        yield RULE.finding(audit, Severity.WARNING, "logprobs_mode", f"{message} {remedy}")
        return
    fix = audit.fix("return raw logprobs", safe=False, logprobs_mode="raw_logprobs")
    remedy = "Divide by the temperature in the trainer, or set logprobs_mode=raw_logprobs."
    confirm = Trial(("logprobs-mode",))
    yield RULE.finding(audit, Severity.WARNING, "logprobs_mode", f"{message} {remedy}", fix, confirm)


RULE = Rule("processed-for-a-plain-trainer", Layer.SEMANTIC, check)
