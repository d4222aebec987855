"""Which findings of a move are so today already: the release before the move has them as well.

Both sides are judged by the same rules. The same finding is of the same rule, setting and value, at the same place of a
file; lines do not count, since a fix moves them. A finding that counts less before the move is brought by it: a key
that was passed over, and is refused now.
"""

from collections.abc import Sequence
from dataclasses import replace

from rlaudit.audit.finding import Finding
from rlaudit.audit.rule import Rule


def with_today(findings: Sequence[Finding], today: Sequence[Finding], rule: Rule | None = None) -> list[Finding]:
    """Return findings with `so_today`. today: what the same rules find before the move.

    If the rule says how much such a finding counts, it counts that, and no fix would keep what runs today.
    """
    ranks: dict[tuple[str, ...], int] = {}
    for old in today:
        ranks[_identity(old)] = max(old.severity.rank, ranks.get(_identity(old), 0))
    marked = []
    for finding in findings:
        so_today = finding.so_today is True or ranks.get(_identity(finding), -1) >= finding.severity.rank
        if so_today and rule is not None and rule.already is not None:
            severity = min(finding.severity, rule.already, key=lambda severity: severity.rank)
            marked.append(replace(finding, so_today=True, severity=severity, fix=None))
        else:
            marked.append(replace(finding, so_today=so_today))
    return marked


def _identity(finding: Finding) -> tuple[str, ...]:
    return finding.rule, finding.setting, finding.value, finding.place.path, finding.place.setting
