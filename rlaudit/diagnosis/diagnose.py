"""The whole diagnosis of a run: every block measured, then the three layers judged in order.

A run may have several blocks (float32 for semantics, bfloat16 for the head). A layer's verdict over the run is that of
its worst block, and the block is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.effects import FactorEffect, Floor, effects_of, noise_floor
from rlaudit.diagnosis.inference_path import judge_inference_path, k2_to_explain_from, path_distance
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.diagnosis.measured import MeasuredArm, measure_block, objective_settings
from rlaudit.diagnosis.objective import judge_objective
from rlaudit.diagnosis.parity import parity_yaml
from rlaudit.diagnosis.semantic import judge_semantics
from rlaudit.engines.hardware.accelerator import machine_of
from rlaudit.laboratory.studies.arms.plan import BlockPlan
from rlaudit.laboratory.studies.arms.run import FinishedRun
from rlaudit.laboratory.studies.arms.seeded_requests import flashinfer_not_seen
from rlaudit.layers import Verdict

# Worst first: a mismatch anywhere is a mismatch, and what was not seen never becomes fine.
SEVERITY = (Verdict.MISMATCH, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED, Verdict.MATCH)


@dataclass(frozen=True)
class BlockDiagnosis:
    """One block: its arms in figures, its effects, its noise floor, its layers, its parity settings.

    distance: of the arm that the inference path is judged on; None where no arm has clean semantics.
    """

    plan: BlockPlan
    measured: Mapping[str, MeasuredArm]
    floor: Floor
    effects: Sequence[FactorEffect]
    judgements: tuple[Judgement, Judgement, Judgement]
    parity: str | None
    distance: Distance | None = None


@dataclass(frozen=True)
class Diagnosis:
    """The run: a judgement per layer, the blocks behind it, and what nobody looked at."""

    run: FinishedRun
    blocks: tuple[BlockDiagnosis, ...]
    layers: tuple[Judgement, Judgement, Judgement]
    not_seen: tuple[str, ...]


def diagnose(run: FinishedRun) -> Diagnosis:
    """Judge a finished run."""
    blocks = tuple(_diagnose_block(run, block) for block in run.plan.blocks)
    semantic, path, objective = (
        _worst([(block.plan.name, block.judgements[position]) for block in blocks]) for position in range(3)
    )
    return Diagnosis(run, blocks, (semantic, path, objective), tuple(_not_seen(run, blocks)))


def _diagnose_block(run: FinishedRun, block: BlockPlan) -> BlockDiagnosis:
    measured = measure_block(run, block)
    floor = noise_floor(run, block, measured)
    recipe = run.plan.recipe
    settings = objective_settings(recipe)
    judged = path_distance(block, measured, floor, settings, recipe.equivalence_margin, recipe.seed)
    distance = None if judged is None else judged[1]
    effects = effects_of(run, block, measured, floor, k2_to_explain_from(judged, measured))
    semantic = judge_semantics(block, measured, effects)
    path = judge_inference_path(judged, effects, floor)
    objective = judge_objective(measured.get("candidate"), (semantic, path), settings, distance)
    parity = parity_yaml(block, effects)
    return BlockDiagnosis(block, measured, floor, effects, (semantic, path, objective), parity, distance)


def _worst(judgements: Sequence[tuple[str, Judgement]]) -> Judgement:
    name, worst = min(judgements, key=lambda entry: SEVERITY.index(entry[1].verdict))
    if len(judgements) == 1:
        return worst
    others = [f"block {other}: {judgement.verdict.value}" for other, judgement in judgements if other != name]
    return replace(worst, because=f"{worst.because} (block {name})", evidence=(*worst.evidence, *others))


def _not_seen(run: FinishedRun, blocks: Sequence[BlockDiagnosis]) -> list[str]:
    """What a reader must not take for fine."""
    lines = []
    for (where, name), arm in run.arms.items():
        if arm.failure is not None:
            state = arm.status if arm.status == arm.failure.boundary else f"{arm.status} at {arm.failure.boundary}"
            lines.append(f"{where}: {name}: {state}: {arm.failure.message}")
    lines += [f"block {name} was not run: {reason}" for name, reason in run.plan.left_out.items()]
    lines += [f"{where}: {name} was not run: {reason}" for (where, name), reason in run.not_run.items()]
    unengaged = {
        f"{effect.factor}={effect.level}: {effect.verdict.value} ({effect.because})"
        for block in blocks
        for effect in block.effects
        if effect.first is None and effect.verdict.value == "not engaged here"
    }
    lines += sorted(unengaged)
    lines += [
        f"{block.plan.name}: {name}: {arm.impossible_tokens} of {arm.scored.tokens} tokens lie outside what the "
        "trainer's filters keep; they have no ratio and are in no figure"
        for block in blocks
        for name, arm in block.measured.items()
        if arm.impossible_tokens
    ]
    lines.append("weight updates: every arm loads its weights once")
    treatments = [arm.treatment for block in run.plan.blocks for arm in block.arms]
    lines += flashinfer_not_seen(treatments, machine_of(run.surroundings.accelerator))
    if run.surroundings.accelerator.kind == "cpu":
        lines.append("CUDA kernels: this run was on a CPU; the scheduling and kernels of a GPU are another path")
    candidates = [block.measured["candidate"] for block in blocks if "candidate" in block.measured]
    lines += dict.fromkeys(note for candidate in candidates for note in candidate.semantics.not_told)
    return lines
