"""What a move between two servers changes: the same requests on both, parameter by parameter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.diagnosis.answer import answered
from rlaudit.diagnosis.move import Change, LayerChange, Move, Side, unsettled
from rlaudit.layers import Judgement, Layer
from rlaudit.probe.course import Probed
from rlaudit.probe.judge import named, raw_step
from rlaudit.probe.parameter import Parameter
from rlaudit.text.enumerated import enumerated

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_sampling import Meanings

NOT_MEASURED = (Change.UNKNOWN, "a probe measures no distance to the trainer without --score")
SENTENCES = {
    Change.SAME: "The move keeps what the logprobs mean",
    Change.CHANGED: "The move changes what the logprobs mean",
    Change.UNKNOWN: "Whether the move changes what the logprobs mean is not known",
}


def move_between(
    today: Probed, after: Probed, layers: tuple[Sequence[Judgement], Sequence[Judgement]], meanings: "Meanings | None"
) -> Move:
    """Return the move. layers: of today's server and of the new one. meanings: None if no trainer was named."""
    before, now = (_side(probed, judged) for probed, judged in zip((today, after), layers, strict=True))
    move = answered(before, now, NOT_MEASURED, layers[1])
    if meanings is not None:
        return move
    meaning = _of_reports(today, after)
    left = [name for name in differences(today, after)[0] if after.parameter(name).in_report is False]
    step = [f"To do: {raw_step(after.who.release)}."] if left else []
    answer = [f"{SENTENCES[meaning.change]}: {meaning.because}.", *step]
    return replace(move, changes=(meaning, *move.changes[1:]), answer=answer)


def differences(today: Probed, after: Probed) -> tuple[list[str], list[str]]:
    """Return the parameters of which the two servers surely differ, and those that one of them does not tell of."""
    pairs = [(parameter, after.parameter(parameter.name)) for parameter in today.parameters]
    changed = [mine.name for mine, its in pairs if _differ(mine, its)]
    open_on_one = [
        mine.name for mine, its in pairs if mine.name not in changed and None in (mine.in_report, its.in_report)
    ]  # fmt: skip
    return changed, open_on_one


def _differ(mine: Parameter, its: Parameter) -> bool:
    reports, draws = {mine.in_report, its.in_report}, {mine.in_draws, its.in_draws}
    return reports == {True, False} or draws == {True, False}


def _of_reports(today: Probed, after: Probed) -> LayerChange:
    """Return what the move does to the meaning of logprobs, no matter what a trainer assumes."""
    changed, open_on_one = differences(today, after)
    if changed:
        new = [name for name in changed if after.parameter(name).in_report]
        left = [name for name in changed if name not in new]
        clauses = [f"the report now leaves out {named(left, after)}"] if left else []
        clauses += [f"the report now has {named(new, after)}"] if new else []
        return LayerChange(layer=Layer.SEMANTIC, change=Change.CHANGED, because="; ".join(clauses))
    if open_on_one:
        return LayerChange(
            layer=Layer.SEMANTIC, change=Change.UNKNOWN, because=f"not known of both servers: {enumerated(open_on_one)}"
        )
    return LayerChange(layer=Layer.SEMANTIC, change=Change.SAME, because="every parameter is reported as before")


def _side(probed: Probed, layers: Sequence[Judgement]) -> Side:
    semantic, path, objective = layers
    return Side(
        vllm=probed.who.release,
        layers=(semantic.verdict, path.verdict, objective.verdict),
        causes=semantic.causes,
        cause=semantic.cause,
        unsettled=unsettled(semantic),
    )
