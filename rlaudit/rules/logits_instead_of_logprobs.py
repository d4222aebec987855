"""The engine returns logits in the place of logprobs.

What changed
    `logprobs_mode` of 0.10.0 and later has four values. Two of them, `raw_logits` and `processed_logits`, return logits
    under the names of logprobs.
    Source: LogprobsMode, vllm/config.py (0.10.0:222).

Why it matters
    A logit is no logarithm of a probability: values above 0 and ratios of any size. No loss can use them as they
    are.

Example
    Reported:

        to: 0.18.1
        engine: {logprobs_mode: processed_logits}
        trainer: {uses_rollout_logprobs: true}

    Use instead:

        engine: {logprobs_mode: processed_logprobs}

Safe to ignore when
    The client asks for the whole vocabulary and normalises itself.

How to confirm
    Look at one answer: a logprob above 0 is a logit. `rlaudit compare` refuses such rollouts.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import Returned, engine_of, returned_logprobs
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import PROCESSED_IS_FINAL


def check(audit: Audit) -> Iterator[Finding]:
    """Report a *_logits mode while logprobs are used."""
    uses = audit.config.facts.uses_rollout_logprobs
    if returned_logprobs(audit.after) is not Returned.LOGITS or uses is False:
        return
    mode = audit.after.value("logprobs_mode")
    divides = audit.config.facts.divides_by_temperature
    wanted = "processed_logprobs" if divides is True else "raw_logprobs" if divides is False else None
    message = f"{engine_of(audit.after)} returns logits under logprobs_mode={mode}, and no logprobs."
    message += f" Set logprobs_mode={wanted or 'processed_logprobs or raw_logprobs, whichever the trainer computes'}."
    fix = None
    if wanted and audit.after.version >= PROCESSED_IS_FINAL:
        fix = audit.fix("return logprobs", safe=False, logprobs_mode=wanted)
    yield RULE.finding(audit, Severity.ERROR if uses is True else Severity.WARNING, "logprobs_mode", message, fix)


RULE = Rule("logits-instead-of-logprobs", Layer.SEMANTIC, check)
