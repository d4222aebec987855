"""What to do, a line for each action with the findings that it settles."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.audit.finding import ActionKind
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding

_LABELS: Mapping[ActionKind, str] = {
    ActionKind.FIX: "--fix {of}",
    ActionKind.FRAMEWORK: "Take {of}",
    ActionKind.CHANGE: "Change {of}",
    ActionKind.UNSAFE_FIX: "Decide, as it changes results: --fix=unsafe ({of})",
    ActionKind.DECIDE: "Decide: {of}",
    ActionKind.RECORD: "Record the run (rlaudit record -- COMMAND)",
}
# Actions of these kinds that settle the same rules share a line; between them stands this.
_JOINED: Mapping[ActionKind, str] = {ActionKind.CHANGE: ", ", ActionKind.DECIDE: ", ", ActionKind.UNSAFE_FIX: "; "}
_ORDER = tuple(ActionKind)


def action_lines(findings: "Iterable[Finding]") -> list[str]:
    """Return a line for each action, in the order in which to act. What would settle notes alone is no action."""
    settled: dict[tuple[ActionKind, str], list[Finding]] = {}
    for finding in findings:
        action = finding.action
        if action is not None:
            settled.setdefault((action.kind, _what(finding) or action.of), []).append(finding)
    together: dict[tuple[ActionKind, str, str], list[str]] = {}
    for (kind, of), settled_by_it in settled.items():
        if any(finding.severity != Severity.NOTE for finding in settled_by_it):
            apart = "" if kind in _JOINED else of
            together.setdefault((kind, apart, _rules_line(settled_by_it)), []).append(of or _fixed(settled_by_it))
    ordered = sorted(together.items(), key=lambda entry: _ORDER.index(entry[0][0]))
    return [f"{_LABELS[kind].format(of=_JOINED.get(kind, '').join(of))}: {rules}" for (kind, _, rules), of in ordered]


def _what(finding: "Finding") -> str:
    """Return the settings that a decision is about, with their values; "" for another action or without values."""
    if finding.action is None or finding.action.kind is not ActionKind.DECIDE:
        return ""
    return " and ".join(f"{name}={value}" for name, value in (finding.sets or {}).items())


def _fixed(findings: "Sequence[Finding]") -> str:
    """Return what the fixes set, by vLLM's names; they may only take lines away."""
    sets = dict.fromkeys(f"{name}={value}" for finding in findings for name, value in (finding.sets or {}).items())
    return f"sets {', '.join(sets)}" if sets else "edits the file"


def _rules_line(findings: "Sequence[Finding]") -> str:
    """Return `removed-flag (3), async-scheduling-on and 2 notes`."""
    rules = Counter(finding.rule for finding in findings if finding.severity != Severity.NOTE)
    named = ", ".join(f"{rule} ({number})" if number > 1 else rule for rule, number in rules.items())
    notes = len(findings) - rules.total()
    return f"{named} and {notes} note{'' if notes == 1 else 's'}" if notes else named
