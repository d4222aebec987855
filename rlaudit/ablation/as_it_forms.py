"""The verdict while a run is under way: the three layers, judged by the arms that have ended."""

from collections.abc import Iterator
from dataclasses import dataclass

from rlaudit.diagnosis.diagnose import Diagnosis, diagnose
from rlaudit.laboratory.studies.arms.plan import Plan
from rlaudit.laboratory.studies.arms.run import FinishedRun
from rlaudit.layers import Judgement, Layer, Verdict, untested
from rlaudit.report.figures import TELLING, TITLES
from rlaudit.statistics.estimate import figure

WITHOUT_REFERENCE = "waits for the reference"


@dataclass(frozen=True)
class SoFar:
    """The state of a run before its end."""

    diagnosis: Diagnosis
    layers: tuple[Judgement, ...]
    # Each arm's distance to the trainer.
    arm_lines: tuple[str, ...]
    # Each layer, and what could still change it.
    layer_lines: tuple[str, ...]
    # Whether no arm that is to come can change a verdict.
    is_settled: bool


def so_far(run: FinishedRun, planned: Plan) -> SoFar:
    """Judge a run by the arms that have ended: the meaning of logprobs without the reference, their distance with it.

    Once the arms that decide have ended, the run is settled if the first layer that is not clean is a mismatch whose
    cause an arm has removed: further arms only name further causes, and the layers after it are judged once it is
    fixed. It is also settled if a replay does not reproduce the recorded run: then no arm is judged.
    """
    diagnosis = diagnose(run)
    decided = all((arm.block, arm.name) in run.arms for arm in planned.blocks[0].deciding)
    layers = tuple(
        judgement if decided or judgement.layer is Layer.SEMANTIC else untested(judgement.layer, WITHOUT_REFERENCE)
        for judgement in diagnosis.layers
    )
    arms = sum(len(block.arms) for block in planned.blocks)
    arm_lines = (f"so far: {len(run.arms)} of {arms} arms", *(f"  {line}" for line in _arm_lines(diagnosis)))
    layer_lines: list[str] = []
    for number, judgement in enumerate(layers, start=1):
        layer_lines += [f"{number}. {_verdict_line(judgement)}", f"   {_open_line(judgement, run, planned)}"]
    first = next((judgement for judgement in layers if not judgement.verdict.passes), None)
    settled = decided and first is not None and first.verdict is Verdict.MISMATCH and bool(first.causes)
    settled = settled or any(block.replay and block.replay.verdict is Verdict.MISMATCH for block in diagnosis.blocks)
    return SoFar(diagnosis, layers, arm_lines, tuple(layer_lines), settled)


def _arm_lines(diagnosis: Diagnosis) -> Iterator[str]:
    for block in diagnosis.blocks:
        for name, arm in block.measured.items():
            figures = [
                f"{TITLES[metric]} {figure(measurement.value, measurement.low, measurement.high)}"
                for metric in TELLING
                if (measurement := arm.measurements[metric]).value is not None
            ]
            yield f"{block.plan.name}: {name}: {', '.join(figures)}"


def _verdict_line(judgement: Judgement) -> str:
    cause = f": {judgement.cause}" if judgement.verdict is Verdict.MISMATCH and judgement.cause else ""
    return f"{judgement.layer.value:<15} {judgement.verdict.value.upper()}{cause}"


def _open_line(judgement: Judgement, run: FinishedRun, planned: Plan) -> str:
    if judgement.verdict is Verdict.MISMATCH:
        return "final: further arms can only name further causes"
    if not judgement.verdict.passes:
        return f"open: {judgement.because}"
    begun = {block.name for block in run.plan.blocks}
    to_come = [block.name for block in planned.moves if block.name not in begun]
    return f"final, except for block {', '.join(to_come)}" if to_come else "final, except for the noise of repeats"
