"""The report of a log that was checked against gates: what was seen of each gate, then what an alarm means."""

from typing import TYPE_CHECKING

from rlaudit.curves.gate import HeldGate
from rlaudit.report.figures import number
from rlaudit.report.rendering.outline import Entries, Indents, Outline, Section, Table, listed, not_seen
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report

HEADER = (
    "gate", "metric", "noticed at step", "violated from", "steps seen", "violations", "last value", "evidence",
)  # fmt: skip
# Times the evidence that raises a gate: digits beyond that say nothing more.
FAR_OVER = 1000.0


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    held = report["gates"]
    gates = held.gates
    raised = frozenset(index for index, gate in enumerate(gates) if gate.alarm_step is not None)
    rows = [_row(gate) for gate in gates]
    reasons = [(gate.gate, [gate.because]) for gate in gates]
    return Outline(
        f"{len(raised)} of {counted(len(gates), 'gate')} violated: {held.name}"
        if gates
        else f"nothing seen: {held.name}",
        [
            Section("gates", "Gates", [Table(HEADER, rows, marked=raised)] if rows else []),
            Section("seen", "What was seen", [Entries(reasons)] if reasons else []),
            not_seen(report, mark=""),
            listed("method", "Method", held.method, mark=""),
        ],
        facts=[f"ended: {held.ended}"],
        about=[held.what] if held.what else [],
        indents=Indents(line=2, table=2),
    )


def _row(gate: HeldGate) -> list[str]:
    alarm = ["-", "-"] if gate.alarm_step is None else [str(gate.alarm_step), str(gate.since_step)]
    steps = f"{gate.steps} ({gate.first_step} to {gate.last_step})" if gate.steps else "0"
    value = "no number" if gate.last_value is None else number(gate.last_value)
    is_far = gate.evidence > FAR_OVER * gate.alarm_evidence
    evidence = (
        f"over {FAR_OVER * gate.alarm_evidence:.3g}" if is_far else f"{gate.evidence:.3g} of {gate.alarm_evidence:.3g}"
    )
    return [gate.gate, gate.metric, *alarm, steps, str(gate.steps_beyond), value, evidence]
