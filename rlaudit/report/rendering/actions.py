"""What to do, a line for each action with the findings that it settles, and whether today needs it as well."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.rules.audit.finding import Action, ActionKind
from rlaudit.settings.place import one_key
from rlaudit.severity import Severity
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding

_LABELS: Mapping[ActionKind, str] = {
    ActionKind.FIX: "--fix {of}",
    ActionKind.FRAMEWORK: "Take {of}",
    ActionKind.CHANGE: "Change or remove {of}",
    ActionKind.UNSAFE_FIX: "If you accept that results change, let --fix=unsafe do this: {of}",
    ActionKind.DECIDE: "Decide on {of}",
    ActionKind.RECORD: "Record the run: rlaudit record -- COMMAND",
}
# Of a decision whose values are known.
_SET = "Set {of}"
# Actions of these kinds that settle the same rules share a line; between them stands this.
_JOINED: Mapping[ActionKind, str] = {ActionKind.CHANGE: ", ", ActionKind.DECIDE: ", ", ActionKind.UNSAFE_FIX: "; "}
_ORDER = tuple(ActionKind)
SO_TODAY = "; needed today, too"


def action_lines(findings: "Iterable[Finding]") -> list[str]:
    """Return a line for each action, in the order in which to act. What would settle notes alone is no action."""
    settled: dict[tuple[ActionKind, str, str], list[Finding]] = {}
    for finding in findings:
        if finding.action is not None:
            settled.setdefault((finding.action.kind, *_label_and_object(finding, finding.action)), []).append(finding)
    together: dict[tuple[bool, ActionKind, str, str, str], list[str]] = {}
    for (kind, label, of), settled_by_it in settled.items():
        if any(finding.severity != Severity.NOTE for finding in settled_by_it):
            so_today = all(finding.so_today is True for finding in settled_by_it)
            rules = f"{_rules_line(settled_by_it)}{SO_TODAY if so_today else ''}"
            key = (so_today, kind, label, "" if kind in _JOINED else of, rules)
            together.setdefault(key, []).append(of or _fixed(settled_by_it))
    # What the move brings comes first.
    ordered = sorted(together.items(), key=lambda entry: (entry[0][0], _ORDER.index(entry[0][1])))
    return [
        f"{label.format(of=_JOINED.get(kind, '').join(of))} (for {rules})" for (_, kind, label, _, rules), of in ordered
    ]


def _label_and_object(finding: "Finding", action: Action) -> tuple[str, str]:
    """Return the form of an action's line, and what the action is about: of a decision the values, if known."""
    if action.kind is ActionKind.DECIDE and (values := list(_to_set(finding))):
        return _SET, " and ".join(values)
    return _LABELS[action.kind], action.of


def _fixed(findings: "Sequence[Finding]") -> str:
    """Return what the fixes set, as the file spells it; they may only take lines away."""
    sets = dict.fromkeys(setting for finding in findings for setting in _to_set(finding))
    return f"writes {', '.join(sets)}" if sets else "edits the file"


def _to_set(finding: "Finding") -> Iterator[str]:
    """Yield what a finding says to set, as the file spells it if it has a key, else with what takes it.

    vLLM's own name of an argument is no key of every framework: some drop a written false.
    """
    edits = finding.fix.edits if finding.fix is not None and finding.sets else ()
    if edits:
        yield from (one_key(edit.replacement) for edit in edits if edit.start == edit.end and edit.replacement.strip())
        changed = [edit.replacement.strip() for edit in edits if edit.start != edit.end and edit.replacement.strip()]
        # A value that is replaced stands behind its key, a switch is its key.
        yield from (text if text.startswith("--") else f"{finding.location.setting}={text}" for text in changed)
        return
    spelt = finding.location.setting or ""
    for name, value in (finding.sets or {}).items():
        is_key = spelt != name and spelt.rpartition(".")[2].lstrip("-").replace("-", "_") == name
        if is_key or name in NEUTRAL_SAMPLING:
            yield f"{spelt if is_key else name}={value}"
        elif name.isupper():
            yield f"{name}={value} in the environment"
        else:
            yield f"{name}={value} among vLLM's engine arguments, by hand"


def _rules_line(findings: "Sequence[Finding]") -> str:
    """Return `removed-flag (3), async-scheduling-on and 2 notes`."""
    rules = Counter(finding.rule for finding in findings if finding.severity != Severity.NOTE)
    named = ", ".join(f"{rule} ({number})" if number > 1 else rule for rule, number in rules.items())
    notes = len(findings) - rules.total()
    return f"{named} and {notes} note{'' if notes == 1 else 's'}" if notes else named
