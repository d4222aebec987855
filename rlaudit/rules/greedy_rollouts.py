"""Rollouts are sampled greedily.

What changed
    A temperature below 1e-5 makes vLLM take the most likely token. V0 then returns logprobs at temperature 1, and
    V1 in both modes those of the whole distribution at temperature 1.

Why it matters
    There is no sampling distribution any more. The sampled token had probability one, and the returned logprob says
    otherwise. No importance ratio means anything. All samples of a prompt are the same, so group advantages are zero,
    and a trainer that divides logits by the temperature divides by zero.

Example
    Reported:

        to: 0.18.1
        sampling: {temperature: 0.0}
        trainer: {divides_by_temperature: true, uses_rollout_logprobs: true}

    Use instead:

        sampling: {temperature: 1.0}

Safe to ignore when
    The config only evaluates.

How to confirm
    Sample one prompt twice: greedy samples are equal.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import in_the_loss
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import is_greedy, temperature
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report temperature zero under a trainer."""
    if audit.config.has_trainer and is_greedy(audit.after):
        message = f"Rollouts are greedy (temperature={temperature(audit.after):g}), so tokens are not drawn from the"
        ratios = ", and importance ratios mean nothing" if in_the_loss(audit.config) else ""
        message += f" distribution of their logprobs{ratios}. Sample with a temperature."
        yield RULE.finding(audit, Severity.WARNING, "temperature", message)


RULE = Rule("greedy-rollouts", Layer.SEMANTIC, check)
