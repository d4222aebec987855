"""What to do, a line for each action with the findings that it settles."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.rules.audit.finding import ActionKind
from rlaudit.settings.place import one_key
from rlaudit.severity import Severity
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding

_LABELS: Mapping[ActionKind, str] = {
    ActionKind.FIX: "--fix {of}",
    ActionKind.FRAMEWORK: "Take {of}",
    ActionKind.CHANGE: "Change {of}",
    ActionKind.UNSAFE_FIX: "--fix=unsafe changes results, so check first ({of})",
    ActionKind.DECIDE: "Decide on {of}",
    ActionKind.RECORD: "Record the run (rlaudit record -- COMMAND)",
}
# Actions of these kinds that settle the same rules share a line; between them stands this.
_JOINED: Mapping[ActionKind, str] = {ActionKind.CHANGE: ", ", ActionKind.DECIDE: ", ", ActionKind.UNSAFE_FIX: "; "}
_ORDER = tuple(ActionKind)
# What takes a setting that no fix writes.
ENVIRONMENT, ENGINE = "in the environment", "for vLLM's engine, where --fix cannot write it"


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
    return " and ".join(setting for _, setting in to_set(finding))


def _fixed(findings: "Sequence[Finding]") -> str:
    """Return what the fixes set, as the file spells it; they may only take lines away."""
    sets = dict.fromkeys(setting for finding in findings for _, setting in to_set(finding))
    return f"writes {', '.join(sets)}" if sets else "edits the file"


def to_set(finding: "Finding") -> Iterator[tuple[str, str]]:
    """Yield what a finding says to set, each with what takes it, as the file spells it if it has a key.

    vLLM's own name of an argument is no key of every framework: some drop a written false.
    """
    edits = finding.fix.edits if finding.fix is not None and finding.sets else ()
    if finding.fix is not None and edits:
        option = "--fix" if finding.fix.safe else "--fix=unsafe"
        inserted = [one_key(edit.replacement) for edit in edits if edit.start == edit.end and edit.replacement.strip()]
        changed = [edit.replacement.strip() for edit in edits if edit.start != edit.end and edit.replacement.strip()]
        # A value that is replaced stands behind its key, a switch is its key.
        keyed = [text if text.startswith("--") else f"{finding.location.setting}={text}" for text in changed]
        yield from ((f"written by {option}", text) for text in [*inserted, *keyed])
        return
    spelt = finding.location.setting or ""
    for name, value in (finding.sets or {}).items():
        is_key = spelt != name and spelt.rpartition(".")[2].lstrip("-").replace("-", "_") == name
        takes = ENVIRONMENT if name.isupper() else "" if is_key or name in NEUTRAL_SAMPLING else ENGINE
        yield takes, f"{spelt if is_key else name}={value}"


def _rules_line(findings: "Sequence[Finding]") -> str:
    """Return `removed-flag (3), async-scheduling-on and 2 notes`."""
    rules = Counter(finding.rule for finding in findings if finding.severity != Severity.NOTE)
    named = ", ".join(f"{rule} ({number})" if number > 1 else rule for rule, number in rules.items())
    notes = len(findings) - rules.total()
    return f"{named} and {notes} note{'' if notes == 1 else 's'}" if notes else named
