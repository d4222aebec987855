"""What a move between two servers changes: the same requests on both, parameter by parameter."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.diagnosis.move import Change, LayerChange, Move, Side, changes_of
from rlaudit.layers import Judgement, Layer
from rlaudit.probe.course import Probed
from rlaudit.probe.judge import raw_step
from rlaudit.probe.told import Told
from rlaudit.text.enumerated import enumerated

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_sampling import Meanings

NOT_MEASURED = (Change.UNKNOWN, "a probe does not measure the distance to the trainer")


def move_between(
    today: Probed, after: Probed, layers: tuple[Sequence[Judgement], Sequence[Judgement]], meanings: "Meanings | None"
) -> Move:
    """Return the move. layers: of today's server and of the new one. meanings: None if no trainer was named."""
    sides = [_side(probed, judged) for probed, judged in zip((today, after), layers, strict=True)]
    changes = changes_of(sides[0], sides[1], NOT_MEASURED)
    if meanings is None:
        changes = (_of_reports(today, after), *changes[1:])
    step = layers[1][0].next if meanings is not None else _step(today, after)
    return Move(today=sides[0], after=sides[1], changes=changes, answer=_answer(changes[0], step))


def differences(today: Probed, after: Probed) -> tuple[list[str], list[str]]:
    """Return the parameters of which the two servers surely differ, and those that one of them does not tell of."""
    pairs = [(parameter, after.parameter(parameter.name)) for parameter in today.parameters]
    changed = [mine.name for mine, its in pairs if _differ(mine, its)]
    untold = [
        mine.name for mine, its in pairs if mine.name not in changed and None in (mine.in_report, its.in_report)
    ]  # fmt: skip
    return changed, untold


def _differ(mine: Told, its: Told) -> bool:
    reports, draws = {mine.in_report, its.in_report}, {mine.in_draws, its.in_draws}
    return reports == {True, False} or draws == {True, False}


def _of_reports(today: Probed, after: Probed) -> LayerChange:
    """Return what the move does to the meaning of logprobs, no matter what a trainer assumes."""
    changed, untold = differences(today, after)
    if changed:
        new = [name for name in changed if after.parameter(name).in_report]
        left = [name for name in changed if name not in new]
        clauses = [f"{enumerated(left)} no longer in the report"] if left else []
        clauses += [f"{enumerated(new)} now in the report"] if new else []
        return LayerChange(layer=Layer.SEMANTIC, change=Change.CHANGED, because="; ".join(clauses))
    if untold:
        return LayerChange(
            layer=Layer.SEMANTIC, change=Change.UNKNOWN, because=f"not told on both servers: {enumerated(untold)}"
        )
    return LayerChange(layer=Layer.SEMANTIC, change=Change.SAME, because="every parameter is reported as before")


def _side(probed: Probed, layers: Sequence[Judgement]) -> Side:
    semantic, path, objective = layers
    return Side(
        vllm=probed.who.release,
        layers=(semantic.verdict, path.verdict, objective.verdict),
        causes=semantic.causes,
        cause=semantic.cause,
    )


def _step(today: Probed, after: Probed) -> str:
    """Return what brings back the parameters that are no longer in the report; "" if there are none."""
    changed, _ = differences(today, after)
    left = [name for name in changed if after.parameter(name).in_report is False]
    return raw_step(after.who.release) if left else ""


def _answer(meaning: LayerChange, step: str) -> tuple[str, ...]:
    sentences = {
        Change.SAME: "The move keeps what the logprobs mean",
        Change.CHANGED: "The move changes what the logprobs mean",
        Change.BROKEN: "The move breaks what the logprobs mean",
        Change.FIXED: "The move fixes what the logprobs mean",
    }
    sentence = sentences.get(meaning.change, "Whether the move changes what the logprobs mean is not known")
    lines = [f"{sentence}: {meaning.because}."]
    if meaning.change.is_worse and step:
        lines.append(f"To do: {step}.")
    return tuple(lines)
