"""An importance-sampling correction is on while the backend itself is wrong.

What changed
    Most frameworks have a switch for truncated or masked importance sampling (TIS, MIS, IcePop, a rollout correction).
    People reach for it when curves move after an upgrade.

Why it matters
    A correction weighs tokens by the ratio between trainer and rollout. If that ratio is wrong, because logprobs mean
    something else or KV is stale, the correction weighs tokens by the fault. Training looks calmer and learns from the
    wrong tokens. Repair the backend first. Then let the objective correct the mismatch that is left.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        sampling: {temperature: 0.7}
        trainer: {divides_by_temperature: true, uses_rollout_logprobs: true, importance_sampling_correction: true}

    Use instead:

        engine: {logprobs_mode: processed_logprobs}

Safe to ignore when
    Never while the other finding is true.

How to confirm
    `rlaudit ablate v0-to-v1`: the objective layer is not judged before the two others match.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules import known_rules
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity

# Errors of these make the ratio itself wrong. Other errors stop the run, and a correction hides nothing of them.
DISTORTING = (
    "raw-logprobs",
    "processed-before-temperature",
    "logits-instead-of-logprobs",
    "prompt-logprobs-recompute",
    "prefix-cache-across-updates",
    "lost-token-window",
)


def check(audit: Audit) -> Iterator[Finding]:
    """Report a correction over an error of an earlier layer."""
    if audit.config.facts.importance_sampling_correction is not True:
        return
    wrong = [name for name in DISTORTING if _is_an_error(name, audit)]
    if wrong:
        kind = audit.config.facts.importance_sampling_mode
        named = f" ({kind})" if isinstance(kind, str) and kind else ""
        rules = " and ".join(wrong)
        message = f"The importance ratio is wrong here (see {rules}), and the importance-sampling correction{named} "
        message += f"weighs tokens by it. Turn the correction off, fix {rules}, then judge the mismatch that is left."
        yield RULE.finding(audit, Severity.WARNING, "importance_sampling_correction", message)


def _is_an_error(name: str, audit: Audit) -> bool:
    return any(finding.severity is Severity.ERROR for finding in known_rules()[name].check(audit))


RULE = Rule("correction-hides-a-backend-mismatch", Layer.OBJECTIVE, check)
