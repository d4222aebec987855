"""This config writes no metric of the mismatch between rollout and trainer.

What changed
    Nothing in vLLM. TRL, OpenRLHF and ms-swift log the mismatch only where their correction is on, OpenRLHF does
    not even ask for logprobs otherwise.

Why it matters
    A migration is judged by this metric. Where it is absent, dashboards show nothing unusual in any case: absent means
    unknown, not fine.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        trainer: {importance_sampling_correction: false, logs_mismatch: false}

    Use instead:

        trainer: {logs_mismatch: true}

Safe to ignore when
    Mismatch is measured elsewhere, for instance with `rlaudit ablate` before every upgrade.

How to confirm
    Look for the metric in the last run's log; `rlaudit ablate quick` measures it without a training run.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity


def check(audit: Audit) -> Iterator[Finding]:
    """Report a framework that is known not to log it under these settings."""
    if audit.config.facts.logs_mismatch is not False:
        return
    off = audit.config.facts.importance_sampling_correction is False
    message = "The importance-sampling correction is off, so this config" if off else "This config"
    message += " writes no metric of the mismatch between rollout and trainer. "
    message += (
        "Its curves will not show what this migration does to logprobs."
        if audit.migrates
        else "So the mismatch stays unknown."
    )
    severity = Severity.WARNING if audit.migrates else Severity.NOTE
    yield RULE.finding(audit, severity, "logs_mismatch", message, confirm=Trial(recipe="quick"))


RULE = Rule("correction-off-and-metric-absent", Layer.OBJECTIVE, check)
