"""Which findings of a move are so today already: the release before the move has them as well.

The same rules judge both sides. The same finding is of the same rule, setting and value, in the same file. Lines
do not count, since a fix moves them. A finding that counts less before the move is brought by it: a key that was passed
over, and is refused now.
"""

from collections.abc import Sequence
from dataclasses import replace

from rlaudit.rules.audit.audit import UNKNOWN_VALUE
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule


def with_today(
    findings: Sequence[Finding], today: Sequence[Finding], rule: Rule | None = None, *, of_one_file: bool = True
) -> list[Finding]:
    """Return findings with `so_today`. today: what the same rules find before the move.

    of_one_file: whether both sides are of one file, and not of two recordings. If the rule says how much a finding
    counts that is so today, it counts that, and no fix would keep what runs today.
    """
    marked = []
    for finding in findings:
        so_today = finding.so_today is True or any(_is_in(finding, old, of_one_file) for old in today)
        if so_today and rule is not None and rule.already is not None:
            severity = min(finding.severity, rule.already, key=lambda severity: severity.rank)
            marked.append(replace(finding, so_today=True, severity=severity, fix=None))
        else:
            marked.append(replace(finding, so_today=so_today))
    return marked


def _is_in(finding: Finding, old: Finding, of_one_file: bool) -> bool:
    """Return whether a finding is there before the move, and counts as much.

    A release without the argument has no value for it, and does the same: 0.8.5 returned raw logprobs as well. A value
    that is open after the move brings nothing.
    """
    same_file = old.place.path == finding.place.path or not of_one_file
    same_value = old.value in ("", finding.value) or finding.value in ("", UNKNOWN_VALUE)
    same = (old.rule, old.setting) == (finding.rule, finding.setting) and same_file and same_value
    return same and old.severity.rank >= finding.severity.rank
