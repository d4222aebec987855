"""A run and the gates learned from runs of today's stack."""

from typing import TYPE_CHECKING

from rlaudit.curves.learned_gates import JudgedGate, Verdict
from rlaudit.curves.metric_names import known_metric
from rlaudit.report.figures import number
from rlaudit.report.rendering.group_layer import layer_of
from rlaudit.report.rendering.outlines.learned_gates import limit, title, today
from rlaudit.report.rendering.verdict_block import Row, VerdictBlock
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.curves.learned_gates import LearnedGate
    from rlaudit.report.parts.learned_gates import LearnedGates
    from rlaudit.report.report import Report

ORDER = (Verdict.OUTSIDE, Verdict.UNKNOWN, Verdict.WITHIN)


def block(report: "Report") -> VerdictBlock:
    """Return the gates that the run leaves first."""
    learned = report["learned_gates"]
    judged = sorted(learned.judged, key=lambda held: ORDER.index(held.verdict))
    rows = [_row(held.gate, held, learned) for held in judged]
    rows = rows or [_row(gate, None, learned) for gate in learned.gates if gate.part.judged]
    return VerdictBlock(
        title=title(learned),
        answer=[
            f"Limits are from {counted(len(learned.runs), 'run')} of today's stack: a run of that stack leaves any of "
            f"them with a probability of {learned.alpha:g} at most.",
            *learned.notes,
        ],
        rows=rows,
        findings=[
            f"{held.gate.metric}, {held.gate.part}: {held.because}"
            for held in judged
            if held.verdict is not Verdict.WITHIN
        ],
    )


def _row(gate: "LearnedGate", held: JudgedGate | None, learned: "LearnedGates") -> Row:
    known = known_metric(gate.metric)
    return Row(
        metric=f"{gate.metric}, {gate.part}",
        today=today(gate),
        new="-" if held is None else number(held.value),
        limit=f"{limit(gate)}: {counted(len(learned.runs), 'run')}, {100 * learned.alpha:g} % false alarms",
        verdict="learned" if held is None else str(held.verdict),
        layer=layer_of(None if known is None else known.group),
    )


BLOCK = block
