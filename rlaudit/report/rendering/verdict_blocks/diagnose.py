"""Layers that were judged, of one engine or of both sides of a move."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlaudit.diagnosis.move import Change, LayerChange, Move, Side, named_causes
from rlaudit.layers import Judgement, Layer, Verdict
from rlaudit.meaning.token_tests import MEAN_RATIO_EFFECT
from rlaudit.report.figures import interval
from rlaudit.report.rendering.changed_histories import changed_turns
from rlaudit.report.rendering.differing_inputs import differing_inputs
from rlaudit.report.rendering.outline import outline_of
from rlaudit.report.rendering.verdict_block import Row, VerdictBlock

if TYPE_CHECKING:
    from rlaudit.report.report import Report

WHAT = {
    Layer.SEMANTIC: "meaning of the logprobs",
    Layer.INFERENCE_PATH: "distance from the trainer",
    Layer.OBJECTIVE: "clip range of the objective",
}
WITHOUT_SIDES = {
    Layer.SEMANTIC: "what the trainer assumes",
    Layer.INFERENCE_PATH: "the reference, and the noise of repeats",
    Layer.OBJECTIVE: "the clip range",
}


def block(report: "Report") -> VerdictBlock:
    """Return the answer with both sides, else the verdict of each layer."""
    move = report.get("move")
    judged = [layer for layer in report["layers"] if not layer.verdict.passes]
    open_ = [layer for layer in judged if layer.verdict is not Verdict.NOT_TESTED]
    return VerdictBlock(
        title=outline_of(report).title,
        answer=move.answer if move is not None else [_sentence(layer) for layer in report["layers"]],
        rows=_rows_of_move(move) if move is not None else [_row(layer) for layer in report["layers"]],
        findings=[*_inputs(report), *changed_turns(report), *map(_finding, open_)],
        defects=[f"{defect.name}: {defect.about} {defect.way_out}" for defect in report.get("known_defects", ())],
    )


def _inputs(report: "Report") -> list[str]:
    inputs = differing_inputs(report)
    return [] if inputs is None else [f"inputs MISMATCH: {inputs.because}."]


def _sentence(layer: Judgement) -> str:
    return f"{layer.layer}: {layer.verdict.upper()}{f': {layer.cause}' if layer.cause else ''}."


def _finding(layer: Judgement) -> str:
    following = f" Next: {layer.next}" if layer.next else ""
    return f"{layer.layer} {layer.verdict.upper()}: {layer.because.rstrip('.')}.{following}"


def _row(layer: Judgement) -> Row:
    return Row(
        WHAT[layer.layer], "-", layer.cause or "-", WITHOUT_SIDES[layer.layer], str(layer.verdict), str(layer.layer)
    )


def _rows_of_move(move: Move) -> list[Row]:
    semantic, path, objective = move.changes
    rows = [_compared(WHAT[Layer.SEMANTIC], move, semantic, WITHOUT_SIDES[Layer.SEMANTIC], _meaning)]
    if move.after.ratio is not None or (move.today is not None and move.today.ratio is not None):
        limit = f"±{MEAN_RATIO_EFFECT:g}: 0 if tokens are drawn from what is reported"
        rows.append(_compared("mean ratio - 1", move, semantic, limit, lambda side: interval(side.ratio)))
    rows.append(_compared("k3 (nats)", move, path, "no farther than today", lambda side: interval(side.k3)))
    rows.append(_compared(WHAT[Layer.OBJECTIVE], move, objective, objective.because, lambda side: str(side.layers[2])))
    return rows


def _compared(metric: str, move: Move, change: LayerChange, limit: str, of_side: Callable[[Side], str]) -> Row:
    verdict = "not known" if change.change is Change.UNKNOWN else str(change.change)
    today = "-" if move.today is None else of_side(move.today)
    return Row(metric, today, of_side(move.after), limit, verdict, str(change.layer))


def _meaning(side: Side) -> str:
    return named_causes(side) if side.layers[0] is Verdict.MISMATCH else str(side.layers[0])


BLOCK = block
