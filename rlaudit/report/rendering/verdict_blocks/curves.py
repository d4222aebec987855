"""Two trainings: the metrics that separated first, each with the lasting difference that noise alone does not make."""

from typing import TYPE_CHECKING

from rlaudit.curves.comparison import CurveMetric, Outcome
from rlaudit.report.figures import number
from rlaudit.report.rendering.group_layer import layer_of
from rlaudit.report.rendering.outlines.curves import title
from rlaudit.report.rendering.verdict_block import Row, VerdictBlock
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.parts.curves import Curves
    from rlaudit.report.report import Report


def block(report: "Report") -> VerdictBlock:
    """Return the metrics in the report's order: what separated first comes first."""
    curves = report["curves"]
    order = curves.order
    sentences = [f"{order.precedence}: {order.because}", f"suggests: {order.suggests}", f"next: {order.next}"]
    separated = [metric for metric in curves.metrics if metric.outcome is Outcome.SEPARATED]
    return VerdictBlock(
        title=title(curves),
        answer=[
            f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}."
            for sentence, text in zip(sentences, (order.because, order.suggests, order.next), strict=True)
            if text
        ],
        rows=[_row(metric, curves) for metric in curves.metrics if metric.outcome is not Outcome.UNKNOWN],
        findings=[f"{metric.name}: {metric.because}" for metric in separated],
    )


def _row(metric: CurveMetric, curves: "Curves") -> Row:
    separated = metric.outcome is Outcome.SEPARATED
    last = metric.points[-1] if metric.points else None
    today, new = metric.reference_level, metric.candidate_level
    if not separated and last is not None:
        today, new = last.reference, last.candidate
    why = f"noise of {counted(len(curves.reference), 'run')}"
    resolution = metric.resolution
    seen = "" if resolution is None else f"{'a factor ' if metric.logarithm else '± '}{number(resolution)} at the end: "
    return Row(
        metric=metric.name,
        today=number(today),
        new=number(new),
        limit=f"{seen}{why}",
        verdict=f"separated at step {metric.detected_step}" if separated else str(metric.outcome),
        layer=layer_of(metric.group),
    )


BLOCK = block
