"""The report of a run and gates learned from runs: which it leaves, by how much, and what the limits rest on."""

from typing import TYPE_CHECKING

from rlaudit.curves.learned_gates import LearnedGate, Verdict
from rlaudit.report.figures import number
from rlaudit.report.rendering.outline import Entries, Indents, Outline, Section, Table, listed, not_seen
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.parts.learned_gates import LearnedGates
    from rlaudit.report.report import Report

HEADER = ("metric", "what of it", "today", "new", "limit", "verdict")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    learned = report["learned_gates"]
    rows = [[*_named(gate), "-", limit(gate), "learned"] for gate in learned.gates if gate.part.judged]
    if learned.judged:
        rows = [
            [*_named(held.gate), number(held.value), limit(held.gate), str(held.verdict)] for held in learned.judged
        ]
    outside = frozenset(place for place, held in enumerate(learned.judged) if held.verdict is Verdict.OUTSIDE)
    outside_because, open_because = (
        [
            (f"{held.gate.metric}, {held.gate.part}", [held.because])
            for held in learned.judged
            if held.verdict is verdict
        ]
        for verdict in (Verdict.OUTSIDE, Verdict.UNKNOWN)
    )
    return Outline(
        title(learned),
        [
            Section("gates", "Gates", [Table(HEADER, rows, marked=outside)]),
            Section("seen", "What would have passed", [Entries(outside_because)] if outside_because else []),
            Section("open", "Not judged", [Entries(open_because)] if open_because else []),
            listed("runs", "Runs that the limits are from", [*learned.notes, ", ".join(learned.runs)], mark=""),
            not_seen(report, mark=""),
            listed("method", "Method", learned.method, mark=""),
        ],
        about=[f"{learned.name}: {learned.what}"] if learned.name else [],
        indents=Indents(line=2, table=2),
    )


def title(learned: "LearnedGates") -> str:
    """Return how many gates the run leaves, of how many."""
    gates = counted(sum(gate.part.judged for gate in learned.gates), "gate")
    runs = counted(len(learned.runs), "run")
    if not learned.name:
        return f"{gates} learned from {runs}"
    outside = sum(held.verdict is Verdict.OUTSIDE for held in learned.judged)
    unknown = sum(held.verdict is Verdict.UNKNOWN for held in learned.judged)
    open_ = f", {unknown} not judged" if unknown else ""
    return f"{learned.name} is outside {outside} of {gates}{open_}; {runs} of today's stack set the limits"


def limit(gate: LearnedGate) -> str:
    """Return `up to 0.0189`, `from 0.51` or `0.48 to 0.6`."""
    if gate.low is None:
        return f"up to {gate.high:g}"
    return f"from {gate.low:g}" if gate.high is None else f"{gate.low:g} to {gate.high:g}"


def today(gate: LearnedGate) -> str:
    """Return the middle of the runs and their range."""
    return f"{number(gate.today)} ({number(min(gate.values))} to {number(max(gate.values))})"


def _named(gate: LearnedGate) -> list[str]:
    return [gate.metric, str(gate.part), today(gate)]
