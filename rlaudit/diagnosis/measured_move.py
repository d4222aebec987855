"""The move of a block of arms: today's engine and the new one, each measured with its trainer."""

from collections.abc import Mapping, Sequence

from rlaudit.diagnosis.answer import answered
from rlaudit.diagnosis.consequence import MEAN_SQUARES, consequence, unfelt_k2
from rlaudit.diagnosis.effects import Floor
from rlaudit.diagnosis.judgement import PATH_METRIC
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.diagnosis.move import METRIC, Change, Move, Side, change_of_distance, unsettled
from rlaudit.diagnosis.semantic import judgement_of
from rlaudit.laboratory.studies.arms.plan import BlockPlan, Role
from rlaudit.laboratory.studies.arms.recipe import Recipe
from rlaudit.layers import Judgement, Verdict
from rlaudit.statistics.measurement.measure import all_metrics, measure, tally
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings

# What a distance is judged on.
FIGURES = (METRIC, *MEAN_SQUARES.values(), *(clip.value for clip in Clip))


def measured_move(
    block: BlockPlan,
    measured: Mapping[str, MeasuredArm],
    judgements: Sequence[Judgement],
    floor: Floor,
    settings: ObjectiveSettings,
    recipe: Recipe,
) -> Move | None:
    """Return what the block's move changes; None without figures of the candidate."""
    seed = recipe.seed
    candidate, reference = measured.get("candidate"), measured.get("reference")
    if candidate is None:
        return None
    distance = (Change.UNKNOWN, "no meaning that was tried fits both sides")
    if reference is not None and reference.has_meaning and candidate.has_meaning:
        metric = all_metrics()[METRIC]
        figures = measure(candidate.residual, settings, [all_metrics()[name] for name in FIGURES], seed=seed)
        least = unfelt_k2(figures, settings, int(candidate.residual.sequence_lengths_S.min()))
        before, now = (tally(arm.distance, [metric], settings) for arm in (reference, candidate))
        unfelt, noise = recipe.equivalence_margin or least, floor[PATH_METRIC].value
        distance = change_of_distance(before, now, unfelt, noise, seed)
    cured = [*filter(None, (block.parity_name,)), *(arm.name for arm in block.with_role(Role.FIRST))]
    fix = next((measured[name] for name in cured if name in measured and measured[name].semantically_clean), None)
    fixed = None if fix is None or candidate.semantically_clean else _side(fix, settings, seed)
    today = None if reference is None else _side(reference, settings, seed)
    return answered(today, _side(candidate, settings, seed), distance, judgements, fixed)


def _side(arm: MeasuredArm, settings: ObjectiveSettings, seed: int) -> Side:
    """Judge an arm by itself."""
    semantic = judgement_of(arm.meaning)
    k3 = measure(arm.distance, settings, [all_metrics()[METRIC]], seed=seed)[METRIC] if arm.has_meaning else None
    felt = consequence(arm.measurements, settings).verdict if semantic.verdict.passes else Verdict.NOT_TESTED
    return Side(
        vllm=arm.finished.arm.treatment.version,
        # By itself an engine's distance is judged by what a clip range feels, as the objective is.
        layers=(semantic.verdict, felt, felt),
        causes=semantic.causes,
        cause=semantic.cause,
        ratio=arm.measurements["mean_ratio_minus_one"],
        k3=k3,
        arm=arm.name,
        unsettled=unsettled(semantic),
    )
