"""Speculative decoding works together with logprobs in some versions and not in others.

What changed
    V1 gives no drafts to a request that asks for logprobs (or has penalties or min_p) up to 0.13.0. From 0.14.0 on
    such requests are drafted, and their logprobs come from the rejection sampler's target logits.
    Source: vllm/v1/spec_decode/utils.py (0.13.0:9), vllm/v1/sample/rejection_sampler.py (0.14.0:119).

Why it matters
    RL requests ask for logprobs, so a speculative config that did nothing until 0.13.0 begins to act. Tokens are then
    accepted or resampled over several positions at once. That is another path through the kernels, with another batch
    shape per step. The draft model must get every weight update, or its drafts are refused more and more.

Example
    Reported:

        from: 0.12.0
        to: 0.18.1
        engine: {speculative_config: {method: ngram, num_speculative_tokens: 4}}
        sampling: {temperature: 1.0, logprobs: 0}
        trainer: {uses_rollout_logprobs: true}

    Use instead:

        engine: {speculative_config: null}

Safe to ignore when
    Mismatch was measured with drafts on, and draft weights are updated too.

How to confirm
    `rlaudit ablate quick` with and without speculative_config: k3 and the semantic fit must agree.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import penalties
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import DRAFTED_WITH_LOGPROBS

SETTING = "speculative_config"
CONFIRM = Trial(look="run it again without speculative_config, and compare both runs")


def check(audit: Audit) -> Iterator[Finding]:
    """Report a speculative config under requests with logprobs."""
    if not isinstance(audit.after.value(SETTING), dict | str) or audit.config.facts.uses_rollout_logprobs is False:
        return
    now = engine_of(audit.after)
    if audit.after.version < DRAFTED_WITH_LOGPROBS:
        if audit.after.is_v1 and _asks_for_logprobs(audit):
            message = f"{now} gives no drafts to requests with logprobs, so {SETTING} has no effect on these rollouts."
            yield RULE.finding(audit, Severity.NOTE, SETTING, message)
    elif audit.crosses(DRAFTED_WITH_LOGPROBS) and _asks_for_logprobs(audit) and audit.before.is_v1:
        message = (
            f"{engine_of(audit.before)} gave no drafts to requests with logprobs. {now} gives them drafts, so {SETTING}"
        )
        message += " takes effect on rollouts. Measure the mismatch with this setting, or remove it for the migration."
        yield RULE.finding(audit, Severity.WARNING, SETTING, message, confirm=CONFIRM)
    elif audit.config.has_trainer:
        message = f"{now} drafts and verifies rollouts, so each weight update has to update the draft weights as well."
        yield RULE.finding(audit, Severity.NOTE, SETTING, message, confirm=CONFIRM)


def _asks_for_logprobs(audit: Audit) -> bool:
    return audit.config.facts.uses_rollout_logprobs is True or _number(audit.after) or bool(penalties(audit.after))


def _number(side: Side) -> bool:
    count = side.sampling("logprobs")
    return isinstance(count, int) and not isinstance(count, bool)


RULE = Rule("speculative-decoding-logprobs", Layer.INFERENCE_PATH, check)
