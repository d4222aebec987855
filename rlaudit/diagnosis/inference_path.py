"""Layer 2 of an ablation: the logprobs mean the same; do they come from the same numbers?

Judged on an arm whose semantics are clean: the candidate, or else the parity arm. Figures are of the residual, held
against the yardstick of `distance.py`: the recipe's margin, the reference engine, or the objective's clip range. A
factor is named as a cause only when taking it away was seen to engage, to exceed the noise floor and to remove at least
30 % of the excess k2; whatever is left is "unexplained", never "precision".
"""

from collections.abc import Mapping, Sequence

from rlaudit.diagnosis import distance_words as words
from rlaudit.diagnosis.consequence import MEAN_SQUARES
from rlaudit.diagnosis.distance import METRIC, Candidate, Distance, Reference, Yardstick, judge_distance
from rlaudit.diagnosis.effects import PATH_METRIC, FactorEffect, Floor
from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.diagnosis.usual_distance import UsualDistance, usual_distance
from rlaudit.laboratory.studies.arms.plan import BlockPlan
from rlaudit.layers import Layer, Verdict
from rlaudit.measurement.measure import all_metrics, measure, tally
from rlaudit.measurement.metric import Clip, ObjectiveSettings
from rlaudit.report.parts.ablation import EffectVerdict

CONVICTED = (EffectVerdict.REMOVES, EffectVerdict.REDUCES)
MARGIN_FROM = "equivalence_margin of the recipe"
REFERENCE = "reference"
FIGURES = (METRIC, *MEAN_SQUARES.values(), *(clip.value for clip in Clip))


def path_distance(
    block: BlockPlan,
    measured: Mapping[str, MeasuredArm],
    floor: Floor,
    settings: ObjectiveSettings,
    margin: float | None,
    seed: int,
) -> tuple[MeasuredArm, Distance] | None:
    """The arm that the inference path is judged on, and how far it is; None where no arm has clean semantics."""
    arm = next(
        (measured[name] for name in block.judged if name in measured and measured[name].semantically_clean),
        None,
    )
    if arm is None:
        return None
    metrics = [all_metrics()[name] for name in FIGURES]
    candidate = Candidate(
        measurements=measure(arm.residual, settings, metrics, seed=seed),
        tally=tally(arm.residual, [all_metrics()[METRIC]], settings),
        shortest=int(arm.residual.sequence_lengths_S.min()),
        noise=floor.value[PATH_METRIC],
        usual=_usual(arm),
    )
    return arm, judge_distance(candidate, settings, margin, _reference(measured, settings, seed), seed=seed)


def judge_inference_path(
    judged: tuple[MeasuredArm, Distance] | None, effects: Sequence[FactorEffect], floor: Floor
) -> Judgement:
    """The inference path of one block."""
    if judged is None:
        return Judgement(
            Layer.INFERENCE_PATH,
            Verdict.NOT_TESTED,
            None,
            "no arm of this block has clean semantics, and before that its numbers cannot be compared",
            next="mend the semantic layer first",
        )
    arm, distance = judged
    moved = [effect for effect in effects if effect.metric == PATH_METRIC]
    evidence = (
        *words.evidence(distance, _name(arm), MARGIN_FROM),
        f"noise floor of k2: {floor.value[PATH_METRIC]:.3g} ({floor.because[PATH_METRIC]})",
        *(_line(effect) for effect in moved),
    )
    because, falsifier = words.because(distance), words.falsifier(distance)
    if distance.verdict is Verdict.MATCH:
        return Judgement(Layer.INFERENCE_PATH, distance.verdict, None, because, evidence, falsifier)
    if distance.verdict is Verdict.INCONCLUSIVE:
        step = words.settles(distance, "more tokens: raise samples, prompts or max_tokens")
        return Judgement(Layer.INFERENCE_PATH, distance.verdict, None, because, evidence, next=step)
    causes = [effect for effect in moved if effect.verdict in CONVICTED]
    explained = max((effect.share or 0.0 for effect in causes), default=0.0)
    named = "; ".join(f"{effect.factor}={effect.level} {effect.verdict.value} ({effect.because})" for effect in causes)
    left = (
        f"{named}; {max(0.0, 1 - explained):.0%} of the excess k2 stays unexplained"
        if causes
        else "no factor that engaged moves it: unexplained residual"
    )
    return Judgement(
        Layer.INFERENCE_PATH,
        distance.verdict,
        causes[0].factor if causes else None,
        f"{because}; {left}",
        evidence,
        falsifier="an arm with that factor set whose k3 does not fall"
        if causes
        else "a factor whose arm brings the distance within what is let pass",
        next=f"set {causes[0].factor}={causes[0].level} and audit again"
        if causes
        else "add the factors that were not tried to the recipe (rlaudit list factors)",
    )


def k2_to_explain_from(judged: tuple[MeasuredArm, Distance] | None, measured: Mapping[str, MeasuredArm]) -> float:
    """The k2 (nats^2) that factors need not explain: the reference's where the candidate is farther than it, else 0."""
    if judged is None or judged[0].name != "candidate":
        return 0.0
    distance = judged[1]
    if distance.yardstick is not Yardstick.REFERENCE or distance.verdict is not Verdict.MISMATCH:
        return 0.0
    return all_metrics()[PATH_METRIC].value(measured[REFERENCE].residual, distance.settings)


def _reference(measured: Mapping[str, MeasuredArm], settings: ObjectiveSettings, seed: int) -> Reference | None:
    arm = measured.get(REFERENCE)
    if arm is None:
        return None
    metric = all_metrics()[METRIC]
    return Reference(
        name=_name(arm),
        k3=measure(arm.residual, settings, [metric], seed=seed)[METRIC],
        tally=tally(arm.residual, [metric], settings),
        semantic=arm.semantics.verdict,
        serves=arm.semantically_clean,
        usual=_usual(arm),
    )


def _name(arm: MeasuredArm) -> str:
    return f"{arm.name} (vLLM {arm.finished.arm.treatment.version}, {arm.finished.result['resolved']['dtype']})"


def _usual(arm: MeasuredArm) -> UsualDistance | None:
    resolved = arm.finished.result["resolved"]
    if resolved.get("quantization"):
        return None
    return usual_distance(str(resolved["dtype"]), arm.finished.arm.treatment.trainer.dtype)


def _line(effect: FactorEffect) -> str:
    text = f"{effect.factor}={effect.level}: {effect.verdict.value}"
    if effect.first is not None:
        text += f"; first effect on k2 {figure(effect.first.difference, effect.first.low, effect.first.high)}"
    if effect.last is not None:
        text += f", last {figure(effect.last.difference, effect.last.low, effect.last.high)}"
    if effect.interacts:
        text += ", the two disagree: it interacts with another factor"
    return text if effect.first is not None else f"{text} ({effect.because})"
