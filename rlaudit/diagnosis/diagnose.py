"""The whole diagnosis of a run: every block measured, then the three layers judged in order.

A run may have several blocks (float32 for semantics, bfloat16 for the head). A layer's verdict over the run is that of
its worst block that has both sides, and the block is named. A block without today's engine is no move: what it shows is
evidence beside the layers.

A block with a parity arm comes with its settings, ready to paste: vLLM's own names, and what this run saw each do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rlaudit.diagnosis.distance import (
    METRIC,
    Candidate,
    Distance,
    Reference,
    UsualDistance,
    Yardstick,
    judge_distance,
    usual_distance,
)
from rlaudit.diagnosis.effect import Effect, EffectVerdict
from rlaudit.diagnosis.effects import Floor, effects_of, noise_floor
from rlaudit.diagnosis.inference_path import say_path_of_arm
from rlaudit.diagnosis.inputs import Inputs, judge_inputs
from rlaudit.diagnosis.judgement import PATH_METRIC
from rlaudit.diagnosis.measured import MeasuredArm, measure_block
from rlaudit.diagnosis.measured_move import FIGURES, measured_move
from rlaudit.diagnosis.move import Move
from rlaudit.diagnosis.objective import say_objective_of_arm
from rlaudit.diagnosis.remedy import Written, remedy_of, written
from rlaudit.diagnosis.repeats import bytes_of_repeats
from rlaudit.diagnosis.replay import Replay, judge_replay, not_judged
from rlaudit.diagnosis.semantic import say_meaning_of_arms
from rlaudit.engines.hardware.accelerator import machine_of
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Role
from rlaudit.laboratory.studies.arms.rollout import flashinfer_not_seen
from rlaudit.laboratory.studies.arms.run import FinishedRun
from rlaudit.layers import WORST_FIRST, Judgement, Verdict
from rlaudit.meaning.words import unseen_by
from rlaudit.statistics.measurement.measure import Measurement, all_metrics, measure, tally
from rlaudit.statistics.measurement.metric import ObjectiveSettings

REFERENCE = "reference"
# What a setting that is worth making was seen to do.
HELPFUL = frozenset({EffectVerdict.REMOVES, EffectVerdict.REDUCES, EffectVerdict.SMALL})


@dataclass(frozen=True)
class BlockDiagnosis:
    """One block: its arms in figures, its effects, its noise of repeats, its layers, its parity settings."""

    plan: BlockPlan
    measured: Mapping[str, MeasuredArm]
    floor: Floor
    effects: Sequence[Effect]
    judgements: tuple[Judgement, Judgement, Judgement]
    parity: Written | None
    # Of the arm that the inference path is judged on; None if no arm has clean semantics.
    distance: Distance | None = None
    # Of a recording's requests.
    replay: Replay | None = None
    # None without figures of the candidate.
    move: Move | None = None
    # Share of tokens whose bytes differ between an arm and its repeat, by the repeat.
    repeats: Mapping[str, Measurement] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """The run: a judgement per layer, the blocks behind it, and what was not looked at."""

    run: FinishedRun
    blocks: tuple[BlockDiagnosis, ...]
    layers: tuple[Judgement, Judgement, Judgement]
    inputs: Inputs
    not_seen: tuple[str, ...]

    @property
    def move(self) -> Move | None:
        """What the move changes: of the first block that has both sides, else of the first."""
        moves = [block.move for block in self.blocks if block.move is not None]
        return next((move for move in moves if move.today is not None), moves[0] if moves else None)


def diagnose(run: FinishedRun) -> Diagnosis:
    """Judge a finished run."""
    blocks = tuple(_diagnose_block(run, block) for block in run.plan.blocks)
    moves = [block for block in blocks if block.plan in run.plan.moves]
    beside = [block for block in blocks if block.plan not in run.plan.moves]
    semantic, path, objective = (
        _with_those_beside(
            _worst([(block.plan.name, block.judgements[position]) for block in moves]),
            [(block.plan.name, block.judgements[position]) for block in beside],
        )
        for position in range(3)
    )
    inputs, not_compared = judge_inputs(run.inputs)
    not_seen = (*not_compared, *_not_seen(run, blocks))
    return Diagnosis(run, blocks, (semantic, path, objective), inputs, not_seen)


def _diagnose_block(run: FinishedRun, block: BlockPlan) -> BlockDiagnosis:
    measured = measure_block(run, block)
    floor = noise_floor(run, block, measured)
    recipe = run.plan.recipe
    settings = recipe.objective.as_settings()
    judged = _distance(block, measured, floor, settings, recipe.equivalence_margin, recipe.seed)
    distance = None if judged is None else judged[1]
    effects = effects_of(run, block, measured, floor, _k2_to_explain_from(judged, measured))
    remedy = partial(remedy_of, next(iter(block.with_role(Role.CANDIDATE))).treatment)
    semantic = say_meaning_of_arms(block, measured, effects, run.of_block(block), _cures(block, measured), remedy)
    path = say_path_of_arm(judged, effects, floor, remedy)
    objective = say_objective_of_arm(measured.get("candidate"), (semantic.verdict, path.verdict), settings, distance)
    parity = _parity(block, effects)
    layers = (semantic, path, objective)
    replay = judge_replay(run, block)
    if replay is not None and replay.verdict is Verdict.MISMATCH:
        layers = (not_judged(replay, semantic), not_judged(replay, path), not_judged(replay, objective))
    reproduced = replay is None or replay.verdict is not Verdict.MISMATCH
    move = measured_move(block, measured, layers, floor, settings, recipe) if reproduced else None
    repeats = bytes_of_repeats(run, block)
    return BlockDiagnosis(block, measured, floor, effects, layers, parity, distance, replay, move, repeats)


def _cures(block: BlockPlan, measured: Mapping[str, MeasuredArm]) -> list[Arm]:
    """Return the arms that one change takes out of the mismatch."""
    return [
        arm
        for arm in block.with_role(Role.FIRST)
        if arm.name in measured and measured[arm.name].meaning.verdict is not Verdict.MISMATCH
    ]


def _distance(
    block: BlockPlan,
    measured: Mapping[str, MeasuredArm],
    floor: Floor,
    settings: ObjectiveSettings,
    margin: float | None,
    seed: int,
) -> tuple[MeasuredArm, Distance] | None:
    """Return the arm that the inference path is judged on, and how far its residual is.

    That is the first with clean semantics: the candidate, else the parity arm, else an arm with a single factor
    changed. None if no arm has clean semantics.
    """
    names = (*block.judged, *(arm.name for arm in block.with_role(Role.FIRST)))
    arm = next((measured[name] for name in names if name in measured and measured[name].semantically_clean), None)
    if arm is None:
        return None
    candidate = Candidate(
        measurements=measure(arm.residual, settings, [all_metrics()[name] for name in FIGURES], seed=seed),
        tally=tally(arm.residual, [all_metrics()[METRIC]], settings),
        shortest=int(arm.residual.sequence_lengths_S.min()),
        noise=floor[PATH_METRIC].value,
        usual=_usual(arm),
    )
    return arm, judge_distance(candidate, settings, margin, _reference(measured, settings, seed), seed=seed)


def _reference(measured: Mapping[str, MeasuredArm], settings: ObjectiveSettings, seed: int) -> Reference | None:
    arm = measured.get(REFERENCE)
    if arm is None:
        return None
    metric = all_metrics()[METRIC]
    return Reference(
        name=arm.title,
        k3=measure(arm.distance, settings, [metric], seed=seed)[METRIC],
        tally=tally(arm.distance, [metric], settings),
        semantic=arm.meaning.verdict,
        # Logprobs that mean something else are still a distance, if it is known what they mean.
        serves=arm.has_meaning,
        usual=_usual(arm),
    )


def _usual(arm: MeasuredArm) -> UsualDistance | None:
    resolved = arm.finished.result["resolved"]
    if resolved.get("quantization"):
        return None
    return usual_distance(str(resolved["dtype"]), arm.finished.arm.treatment.trainer.dtype)


def _k2_to_explain_from(judged: tuple[MeasuredArm, Distance] | None, measured: Mapping[str, MeasuredArm]) -> float:
    """Return the k2 (nats^2) that factors need not explain: the reference's if the candidate is farther off, else 0."""
    if judged is None or judged[0].name != "candidate":
        return 0.0
    distance = judged[1]
    if distance.yardstick is not Yardstick.REFERENCE or distance.verdict is not Verdict.MISMATCH:
        return 0.0
    return all_metrics()[PATH_METRIC].value(measured[REFERENCE].distance, distance.settings)


def _worst(judgements: Sequence[tuple[str, Judgement]]) -> Judgement:
    name, worst = min(judgements, key=lambda entry: WORST_FIRST.index(entry[1].verdict))
    if len(judgements) == 1:
        return worst
    others = [
        f"block {other!r} has the verdict {judgement.verdict.value}" for other, judgement in judgements if other != name
    ]
    return replace(worst, because=f"{worst.because} (block {name!r})", evidence=(*worst.evidence, *others))


def _with_those_beside(judgement: Judgement, beside: Sequence[tuple[str, Judgement]]) -> Judgement:
    """Return the judgement with what blocks without today's engine show: it is in no move, and turns no layer."""
    lines = [
        f"block {name!r}, which has no arm with today's engine, has the verdict {other.verdict.value}"
        f"{f' ({other.cause})' if other.cause else ''}: {other.because}"
        for name, other in beside
    ]
    return replace(judgement, evidence=(*judgement.evidence, *lines))


def _not_seen(run: FinishedRun, blocks: Sequence[BlockDiagnosis]) -> list[str]:
    """Return what a reader must not take for fine."""
    lines = []
    for (block_name, name), arm in run.arms.items():
        if arm.failure is not None:
            what = "is unsupported here" if arm.status == "unsupported" else f"failed ({arm.failure.boundary})"
            lines.append(f"block {block_name!r}: the arm {name!r} {what}: {arm.failure.message}")
    lines += [run.ended_early] if run.ended_early else []
    lines += [f"block {name!r} was not run: {reason}" for name, reason in run.plan.left_out.items()]
    lines += [
        f"block {block_name!r}: the arm {name!r} was not run: {reason}"
        for (block_name, name), reason in run.not_run.items()
    ]
    unengaged = {
        f"{effect.factor}={effect.level}: {effect.verdict.value} ({effect.because})"
        for block in blocks
        for effect in block.effects
        if effect.first is None and effect.verdict is EffectVerdict.NOT_IN_FORCE
    }
    lines += sorted(unengaged)
    lines += [
        f"block {block.plan.name!r}, arm {name!r}: {arm.impossible_tokens} of {arm.scored.tokens} tokens were left "
        "out of figures. The trainer's filters cut these tokens off, so they have no ratio"
        for block in blocks
        for name, arm in block.measured.items()
        if arm.impossible_tokens
    ]
    lines += [f"in the replay: {sentence}" for sentence in run.plan.recipe.left_out]
    lines += [
        f"block {block.plan.name!r}: it was not tested whether the replay is like the recorded run: "
        f"{block.replay.because}"
        for block in blocks
        if block.replay is not None and block.replay.verdict is Verdict.NOT_TESTED
    ]
    lines.append("weight updates were not tested, since every arm loads its weights only once")
    treatments = [arm.treatment for block in run.plan.blocks for arm in block.arms]
    lines += flashinfer_not_seen(treatments, machine_of(run.setup.accelerator))
    if run.setup.accelerator.kind == "cpu":
        lines.append(
            "CUDA kernels were not seen: this run was on a CPU, and a GPU has other kernels and another scheduling"
        )
    candidates = [block.measured["candidate"] for block in blocks if "candidate" in block.measured]
    lines += dict.fromkeys(note for candidate in candidates for note in unseen_by(candidate.meaning))
    return lines


def _parity(block: BlockPlan, effects: Sequence[Effect]) -> Written | None:
    """Return the parity settings that help, failed or are not possible; None without any, or without a parity arm."""
    if block.parity_name is None:
        return None
    treatment = next(iter(block.with_role(Role.CANDIDATE))).treatment
    remedies = []
    for factor in block.settings.parity:
        level = block.settings.factors[factor][0]
        tried = [effect for effect in effects if (effect.factor, effect.level) == (factor, level)]
        telling = [effect.verdict for effect in tried if effect.verdict in HELPFUL or effect.interacts]
        seen = {effect.verdict for effect in tried}
        remedy = remedy_of(treatment, factor, level)
        absent = not remedy.possible and seen == {EffectVerdict.UNSUPPORTED}
        if telling or absent or seen <= {EffectVerdict.FAILED}:
            remedies.append((remedy, telling[-1] if telling else "not measured"))
    return written(treatment.version, remedies, f"parity settings of block {block.name}")
