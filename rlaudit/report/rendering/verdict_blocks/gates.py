"""A log and the gates that the user wrote."""

from typing import TYPE_CHECKING

from rlaudit.curves.gate import HeldGate
from rlaudit.curves.metric_names import known_metric
from rlaudit.report.figures import number
from rlaudit.report.rendering.group_layer import layer_of
from rlaudit.report.rendering.verdict_block import Row, VerdictBlock
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def block(report: "Report") -> VerdictBlock:
    """Return the gates that were violated first."""
    held = report["gates"]
    gates = sorted(held.gates, key=lambda gate: gate.alarm_step is None)
    raised = [gate for gate in gates if gate.alarm_step is not None]
    return VerdictBlock(
        title=f"{len(raised)} of {counted(len(gates), 'gate')} violated: {held.name}",
        answer=[f"{gate.because[:1].upper()}{gate.because[1:]}." for gate in raised]
        or ["No gate is violated for long."],
        rows=[_row(gate) for gate in gates],
        findings=report["not_seen"],
    )


def _row(gate: HeldGate) -> Row:
    known = known_metric(gate.metric)
    return Row(
        metric=gate.metric,
        today="-",
        new=f"{number(gate.last_value)} at step {gate.last_step}",
        limit=f"{gate.gate}, as given",
        verdict="within" if gate.alarm_step is None else f"violated from step {gate.since_step} on",
        layer=layer_of(None if known is None else known.group),
    )


BLOCK = block
