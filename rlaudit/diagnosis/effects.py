"""What each factor does: its effect when it is the first fix, and when it is the last one.

first   candidate with the factor set, minus the candidate as it is;
last    parity, minus parity without the factor.
Both are paired by prompt and have the same sign when the factor acts alone; where their intervals do not overlap it
interacts with another factor. An effect counts only when the factor was seen to take effect, when it is larger than the
noise of repeats, and when it takes away at least 30 % of what there was to explain.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlaudit.diagnosis.consequence import unfelt_k2
from rlaudit.diagnosis.effect import DUMMY, Effect, EffectVerdict
from rlaudit.diagnosis.judgement import PATH_METRIC, SEMANTIC_METRIC
from rlaudit.diagnosis.measured import MeasuredArm, floor_of
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Role, known_factors, scoring_request
from rlaudit.laboratory.studies.arms.run import FinishedRun
from rlaudit.layers import Layer
from rlaudit.meaning.token_tests import MEAN_RATIO_EFFECT
from rlaudit.statistics.measurement.contrast import Contrast, contrast
from rlaudit.statistics.measurement.measure import all_metrics
from rlaudit.statistics.measurement.metric import FLOAT32_RESOLUTION

# Both sides are one step of a float32 logsumexp off at most, all tokens the same way.
LEAST_FLOOR = {SEMANTIC_METRIC: 2 * FLOAT32_RESOLUTION, PATH_METRIC: 0.5 * (2 * FLOAT32_RESOLUTION) ** 2}
# Share of the excess that a factor must take away before it may be named as a cause. The trade: where several act, a
# smaller one would name bystanders as well, a larger one would miss the second of three equal causes.
NAMING_SHARE = 0.3
REMOVING_SHARE = 0.9
# Effects below this share of a margin are not worth a reader's time, however sure.
NEGLIGIBLE_SHARE = 0.01


@dataclass(frozen=True, kw_only=True)
class NoiseFloor:
    """What cannot be distinguished from zero."""

    value: float
    because: str


# By metric.
Floor = Mapping[str, NoiseFloor]


def noise_floor(run: FinishedRun, block: BlockPlan, measured: Mapping[str, MeasuredArm]) -> Floor:
    """Return the largest of A/A repeats of either end, the dummy factor, and the trainer in other micro-batches."""
    floor = {}
    repeats = [
        arm
        for arm in block.arms
        if arm.role in (Role.CANDIDATE_AGAIN, Role.PARITY_AGAIN) or (arm.role is Role.FIRST and arm.factor == DUMMY)
    ]
    for metric in (SEMANTIC_METRIC, PATH_METRIC):
        scores = [run.scores[scoring_request(arm.finished.arm).key] for arm in measured.values()]
        # |exp(d) - 1| is |d| to first order; k2 and k3 agree there too.
        figure = "mean_abs" if metric == SEMANTIC_METRIC else "k3"
        largest, reason = LEAST_FLOOR[metric], "which is what float32 logprobs resolve"
        micro_batches = max((floor_of(scored, figure) for scored in scores), default=0.0)
        if micro_batches > largest:
            largest, reason = micro_batches, "seen when the trainer scores in other micro-batches"
        for arm in repeats:
            difference = _contrast(measured, arm.name, arm.against, metric)
            if difference is None or difference.low is None or difference.high is None:
                continue
            reach = max(abs(difference.low), abs(difference.high))
            if reach > largest:
                largest, reason = reach, f"seen in the arm {arm.name}"
        floor[metric] = NoiseFloor(value=largest, because=reason)
    return floor


def effects_of(
    run: FinishedRun, block: BlockPlan, measured: Mapping[str, MeasuredArm], floor: Floor, explain_from: float = 0.0
) -> list[Effect]:
    """Return the effects of every factor of the block at every level that was tried.

    They are on the semantic metric and, for factors of the inference path, on the residual as well. explain_from: k2
    (nats^2) that needs no explanation because the reference has it too.
    """
    effects = []
    targets = {SEMANTIC_METRIC: 0.0, PATH_METRIC: max(floor[PATH_METRIC].value, explain_from)}
    negligible = {SEMANTIC_METRIC: NEGLIGIBLE_SHARE * MEAN_RATIO_EFFECT, PATH_METRIC: _negligible_k2(run, measured)}
    for arm in block.with_role(Role.FIRST):
        layer = known_factors()[arm.factor or ""].layer
        for metric in (SEMANTIC_METRIC,) if layer is Layer.SEMANTIC else (SEMANTIC_METRIC, PATH_METRIC):
            blank = Effect(
                block=block.name,
                factor=arm.factor or "",
                level=arm.level or "",
                layer=layer,
                metric=metric,
                verdict=EffectVerdict.FAILED,
                because="",
                floor=floor[metric].value,
                first=None,
                last=None,
                share=None,
                interacts=False,
            )
            effects.append(
                _without_engagement(run, measured, arm, blank)
                or _with_size(block, measured, arm, blank, targets[metric], negligible[metric])
            )
    return effects


def _negligible_k2(run: FinishedRun, measured: Mapping[str, MeasuredArm]) -> float:
    """Return a small share of the user's margin; without a margin, what no range of the objective can feel."""
    recipe = run.plan.recipe
    if recipe.equivalence_margin is not None:
        return NEGLIGIBLE_SHARE * recipe.equivalence_margin
    candidate = measured.get("candidate")
    if candidate is None:
        return 0.0
    shortest = int(candidate.pairs.sequence_lengths_S.min())
    return unfelt_k2(candidate.measurements, recipe.objective.as_settings(), shortest)


def _without_engagement(
    run: FinishedRun, measured: Mapping[str, MeasuredArm], arm: Arm, blank: Effect
) -> Effect | None:
    """Return the effect of a factor that was never in force, which is no effect of zero; None if it was in force."""
    finished = run.arms.get((arm.block, arm.name))
    why = finished.failure.message if finished and finished.failure else "this arm was not run"
    if finished is None or finished.status == "failed":
        return replace(blank, because=why)
    if finished.status == "unsupported":
        return replace(blank, verdict=EffectVerdict.UNSUPPORTED, because=why)
    if arm.name not in measured or "candidate" not in measured:
        return replace(blank, because="this arm or the candidate has no figures")
    before = measured["candidate"].observations[blank.factor]
    after = measured[arm.name].observations[blank.factor]
    if before.level is None or after.level is None:
        unseen = after if after.level is None else before
        return replace(blank, verdict=EffectVerdict.NOT_IN_FORCE, because=unseen.because)
    if before.level == after.level:
        return replace(
            blank,
            verdict=EffectVerdict.NOT_IN_FORCE,
            because=f"the level is {after.level} in both arms; {after.because}",
        )
    return None


def _with_size(
    block: BlockPlan,
    measured: Mapping[str, MeasuredArm],
    arm: Arm,
    blank: Effect,
    target: float,
    negligible: float,
) -> Effect:
    """Return the effect with its size. target: what may be left of the metric."""
    first = _contrast(measured, arm.name, "candidate", blank.metric)
    left_out = next((other.name for other in block.with_role(Role.LAST) if other.factor == arm.factor), None)
    last = _contrast(measured, "parity", left_out, blank.metric)
    if first is None or first.difference is None or first.first is None or first.second is None:
        return replace(blank, first=first, last=last, because=first.reason or "" if first else "no figures")
    excess = abs(first.second) - target
    share = (abs(first.second) - abs(first.first)) / excess if excess > 0 else None
    verdict = _verdict(first, share, blank, negligible)
    because = f"{first.second:.3g} -> {first.first:.3g}"
    if share is not None and verdict in (EffectVerdict.REMOVES, EffectVerdict.REDUCES, EffectVerdict.SMALL):
        because += f", {100 * share:.0f} % of it"
    return replace(
        blank,
        verdict=verdict,
        because=because,
        first=first,
        last=last,
        share=share,
        interacts=last is not None and _apart(first, last, blank.floor),
    )


def _verdict(first: Contrast, share: float | None, blank: Effect, negligible: float) -> EffectVerdict:
    difference, low, high = first.difference, first.low, first.high
    if difference is None or low is None or high is None or low <= 0.0 <= high or abs(difference) <= blank.floor:
        return EffectVerdict.FLOOR
    if abs(difference) < negligible:
        return EffectVerdict.NEGLIGIBLE
    if share is None or share < 0:
        return EffectVerdict.ADDS
    if share < NAMING_SHARE:
        return EffectVerdict.SMALL
    return EffectVerdict.REMOVES if share >= REMOVING_SHARE else EffectVerdict.REDUCES


def _contrast(measured: Mapping[str, MeasuredArm], name: str, against: str | None, metric: str) -> Contrast | None:
    if against is None or name not in measured or against not in measured:
        return None
    after, before = measured[name], measured[against]
    if metric == SEMANTIC_METRIC:
        return contrast(after.pairs, before.pairs, all_metrics()[metric])
    return contrast(after.residual, before.residual, all_metrics()[metric])


def _apart(first: Contrast, last: Contrast, floor: float) -> bool:
    if first.low is None or first.high is None or last.low is None or last.high is None:
        return False
    return first.low > last.high + floor or last.low > first.high + floor
