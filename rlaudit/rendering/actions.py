"""What to do, a line for each action with the findings that it settles."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.audit.finding import ActionKind
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding

_SAYS: Mapping[ActionKind, str] = {
    ActionKind.FIX: "Run it with --fix",
    ActionKind.FRAMEWORK: "Take {of}",
    ActionKind.CHANGE: "Change {of}",
    ActionKind.UNSAFE_FIX: "Decide on --fix=unsafe ({of})",
    ActionKind.DECIDE: "Decide {of}",
    ActionKind.RECORD: "Record the run (rlaudit record -- COMMAND)",
}
# Of these, what findings of the same rules are about stands in one line.
_JOINED: Mapping[ActionKind, str] = {ActionKind.CHANGE: ", ", ActionKind.DECIDE: ", ", ActionKind.UNSAFE_FIX: "; "}
_ORDER = tuple(ActionKind)


def action_lines(findings: "Iterable[Finding]") -> list[str]:
    """Return a line for each action, in the order in which to act; what would settle notes alone is no action."""
    settled: dict[tuple[ActionKind, str], list[Finding]] = {}
    for finding in findings:
        action = finding.action
        if action is not None:
            settled.setdefault((action.kind, action.of), []).append(finding)
    together: dict[tuple[ActionKind, str, str], list[str]] = {}
    for (kind, of), found in settled.items():
        if any(one.severity != Severity.NOTE for one in found):
            apart = "" if kind in _JOINED else of
            together.setdefault((kind, apart, _settles(found)), []).append(of)
    ordered = sorted(together.items(), key=lambda one: _ORDER.index(one[0][0]))
    return [f"{_SAYS[kind].format(of=_JOINED.get(kind, '').join(of))}: {names}" for (kind, _, names), of in ordered]


def _settles(findings: "Sequence[Finding]") -> str:
    """`removed-flag (3), async-scheduling-on and 2 notes`."""
    rules = Counter(one.rule for one in findings if one.severity != Severity.NOTE)
    named = ", ".join(f"{rule} ({number})" if number > 1 else rule for rule, number in rules.items())
    notes = len(findings) - rules.total()
    return f"{named} and {notes} note{'' if notes == 1 else 's'}" if notes else named
