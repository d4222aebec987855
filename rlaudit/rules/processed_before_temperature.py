"""`processed_logprobs` of 0.10.0 and 0.10.1 lacks the temperature and the filters.

What changed
    0.10.0 introduced `logprobs_mode`. Until 0.10.1.1 its processed modes are taken after penalties and bias but
    before temperature, min-p, top-k and top-p; from 0.10.2 on after all of them.
    Source: vllm/v1/sample/sampler.py (0.10.0:41, 0.10.2:143), vLLM pull request 22387.

Why it matters
    The setting looks right, but the logprobs are wrong. For a trainer that divides by the temperature, they are as
    wrong as raw logprobs. prime-rl patched vLLM for this (its issue 697).

Example
    Reported:

        from: 0.8.5
        to: 0.10.1.1
        engine: {logprobs_mode: processed_logprobs}
        environment: {VLLM_USE_V1: "1"}
        sampling: {temperature: 0.7}
        trainer: {divides_by_temperature: true, uses_rollout_logprobs: true}

    Use instead:

        to: 0.10.2

Safe to ignore when
    Temperature is 1 and no filter is set, the trainer does not divide by the temperature, or vLLM is patched.

How to confirm
    `rlaudit ablate v0-to-v1` between this version and 0.10.2: the factor `engine-version` alone moves the mean
    ratio.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import Returned, engine_of, in_the_loss, returned_logprobs
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import filters, is_greedy, listed, temperature
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown


def check(audit: Audit) -> Iterator[Finding]:
    """Report half-processed logprobs against a trainer that needs whole ones."""
    facts = audit.config.facts
    if returned_logprobs(audit.after) is not Returned.HALF_PROCESSED or facts.uses_rollout_logprobs is False:
        return
    if is_greedy(audit.after) or facts.divides_by_temperature is False:
        return
    heat, cut = temperature(audit.after), filters(audit.after)
    lacking = f"Even processed logprobs of {engine_of(audit.after)} leave out temperature and filters"
    remedy = "Move to 0.10.2 or later, which computes them after temperature and filters."
    if isinstance(heat, Unknown):
        reason = f"It is not known whether that matters here: {heat.reason}."
        yield RULE.finding(audit, Severity.WARNING, "logprobs_mode", f"{lacking}. {reason} {remedy}")
        return
    missing = [f"temperature {heat:g}"] if heat != 1 else []
    if cut and facts.replays_filters is True:
        missing.append(listed(cut))
    if missing:
        uses = facts.uses_rollout_logprobs is True and in_the_loss(audit.config)
        certain = facts.divides_by_temperature is True and uses
        applies = "the trainer applies" if certain else "a trainer usually applies"
        message = f"{lacking}. So these logprobs leave out {' and '.join(missing)}, which {applies}. {remedy}"
        severity = Severity.ERROR if certain else Severity.WARNING
        confirm = Trial(("engine-version=0.10.2",))
        yield RULE.finding(audit, severity, "logprobs_mode", message, confirm=confirm)


RULE = Rule("processed-before-temperature", Layer.SEMANTIC, check)
