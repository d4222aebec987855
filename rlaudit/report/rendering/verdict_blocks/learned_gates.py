"""A run and the gates learned from runs of today's stack."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rlaudit.curves.learned_gates import JudgedGate, Verdict
from rlaudit.curves.metric_names import known_metric
from rlaudit.report.figures import number
from rlaudit.report.rendering.group_layer import layer_of
from rlaudit.report.rendering.outlines.learned_gates import limit, title, today
from rlaudit.report.rendering.verdict_block import Row, VerdictBlock
from rlaudit.text.counted import counted
from rlaudit.text.enumerated import enumerated

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
            *_answer(judged),
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


def _answer(judged: Sequence[JudgedGate]) -> Iterator[str]:
    """Yield which metrics leave their limits, and the one that does by the largest factor."""
    outside = [held for held in judged if held.verdict is Verdict.OUTSIDE]
    if outside:
        metrics = list(dict.fromkeys(held.gate.metric for held in outside))
        yield f"Other than runs of today's stack: {enumerated(metrics)}."
        factors = [(held.value / held.gate.today, held.gate) for held in outside if held.value and held.gate.today > 0]
        positive = [(factor, gate) for factor, gate in factors if factor > 0]
        if positive:
            factor, gate = max(positive, key=lambda pair: max(pair[0], 1 / pair[0]))
            yield f"The {gate.part} of {gate.metric} is {factor:.3g} times today's."
    elif judged and all(held.verdict is Verdict.WITHIN for held in judged):
        yield "Like the runs of today's stack: every limit is kept."


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
