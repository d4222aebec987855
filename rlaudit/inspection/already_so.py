"""What stops or has no effect under the release of today as well: it is told as that, and not as a matter of the move.

A rule that speaks of what a release does not have looks at the release after the migration. Asked of the release before
it, it may say the same: then nothing moves, and there is nothing to put in its place that would keep what runs today.
"""

from collections.abc import Sequence
from dataclasses import replace

from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Severity


def told_as_it_is(rule: Rule, audit: Audit, found: Sequence[Finding]) -> list[Finding]:
    """Findings of a rule; those that hold before the move as well are of the rule's severity for that, without a fix.

    One that is milder before is none of them: a key that was passed over and is refused now.
    """
    if rule.already is None or not audit.migrates or not found:
        return list(found)
    today = {(one.setting, one.place): one for one in rule.check(Audit(audit.before, audit.before))}
    return [_told(rule.already, audit, one, today.get((one.setting, one.place))) for one in found]


def _told(already: Severity, audit: Audit, finding: Finding, today: Finding | None) -> Finding:
    if today is None or today.severity.rank < finding.severity.rank:
        return finding
    severity = min(finding.severity, already, key=lambda one: one.rank)
    message = f"{finding.message} It is so with vLLM {audit.before.version} already: the move changes nothing of it."
    return replace(finding, severity=severity, message=message, fix=None)
