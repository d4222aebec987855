"""The report of an ablation."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlaudit.diagnosis.diagnose import BlockDiagnosis, Diagnosis
from rlaudit.diagnosis.inputs import verdicts_on
from rlaudit.diagnosis.judgement import counted, exit_code_of
from rlaudit.diagnosis.known_defects import known_defects
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.laboratory.studies.arms.plan import Arm, Role
from rlaudit.laboratory.studies.arms.rollout import engine_settings
from rlaudit.laboratory.studies.arms.run import FinishedRun
from rlaudit.meaning.words import conclusion_of
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.ablation import Arm as ReportedArm
from rlaudit.report.parts.ablation import ArmSemantics, ArmTrainer, Block, Head, Heads
from rlaudit.report.parts.run import MicroBatchFloor, Run
from rlaudit.severity import Threshold
from rlaudit.statistics.measurement.lattice import LatticeEvidence
from rlaudit.tokens.token_figures import TokenFigures, token_figures

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def document_of(diagnosis: Diagnosis, threshold: Threshold) -> "Report":
    """Return the report of an ablation."""
    run = diagnosis.run
    first = run.plan.recipe.blocks[0]
    report: Report = {
        **new_report(
            "ablate",
            exit_code_of(
                (
                    *verdicts_on(diagnosis.inputs, threshold.fail_for),
                    *counted(diagnosis.layers, diagnosis.move, threshold.fail_for),
                ),
                unfinished(run),
                threshold.fails,
            ),
            before=first.reference.version if first.reference else None,
            after=first.candidate.version,
            layers=diagnosis.layers,
            not_seen=[*diagnosis.not_seen, *_not_seen_in_workers(diagnosis)],
        ),
        "description": run.plan.recipe.description,
        "arms": [
            _arm(run.arms[block.plan.name, arm.name], block, run.setup.accelerator.kind)
            for block in diagnosis.blocks
            for arm in sorted(block.plan.arms, key=_reading_order)
            if (block.plan.name, arm.name) in run.arms
        ],
        "effects": [effect for block in diagnosis.blocks for effect in block.effects],
        "blocks": [_block(block) for block in diagnosis.blocks],
        "known_defects": list(known_defects(run)),
        "run": _run(diagnosis),
        "token_figures": [_token_figures(arm, block) for block in diagnosis.blocks for arm in block.measured.values()],
    }
    if diagnosis.inputs.compared:
        report["inputs"] = diagnosis.inputs
    if diagnosis.move is not None:
        report["move"] = diagnosis.move
    return report


def _block(block: BlockDiagnosis) -> Block:
    return Block(
        name=block.plan.name,
        layers={judgement.layer: judgement.verdict for judgement in block.judgements},
        noise_floor=block.floor,
        parity=None if block.parity is None else block.parity.config_file,
        command=None if block.parity is None else block.parity.command,
        python=None if block.parity is None else block.parity.python,
        distance=None if block.distance is None else block.distance.reported,
        replay=block.replay,
        repeats=block.repeats or None,
    )


def unfinished(run: FinishedRun) -> bool:
    """Return whether an arm failed; one that the engine does not support is an answer."""
    return any(arm.status == "failed" for arm in run.arms.values())


def _reading_order(arm: Arm) -> int:
    """Return the place of an arm among those that are shown: arms run in random order and are read by role."""
    return tuple(Role).index(arm.role)


def _arm(finished: Any, block: BlockDiagnosis, device: str) -> ReportedArm:
    arm: Arm = finished.arm
    measured = block.measured.get(arm.name)
    trainer = arm.treatment.trainer
    reported = ReportedArm(
        name=arm.name,
        block=arm.block,
        role=arm.role,
        environment=f"vllm {arm.treatment.version}",
        levels={arm.factor: arm.level} if arm.factor and arm.level and arm.role is Role.FIRST else {},
        engine_args=engine_settings(arm.treatment, device).engine_args,
        variables=arm.treatment.declared,
        sampling=arm.treatment.sampling,
        trainer=ArmTrainer(
            dtype=trainer.dtype,
            head_dtype=trainer.resolved_head_dtype,
            attention=trainer.attention,
            temperature=trainer.temperature,
        ),
        engaged=_engaged(finished, block),
        status=finished.status,
        error=finished.failure,
        cell=finished.cell_key,
        seconds=finished.usage.get("seconds"),
        peak_memory_mib=finished.usage.get("peak_memory_mib"),
        resolved=finished.result.get("resolved", {}),
        loaded=finished.result.get("loaded", {}),
        batch_probe=finished.result.get("batch_probe", {}),
        prompt_probe=finished.result.get("prompt_probe", {}),
        measurements={},
    )
    return reported if measured is None else _with_figures(reported, measured)


def _not_seen_in_workers(diagnosis: Diagnosis) -> list[str]:
    """Return what could not be read in the engines' workers, each line once."""
    lines = [
        f"in the worker of vLLM {arm.arm.treatment.version}: {name}: {why}"
        for arm in diagnosis.run.arms.values()
        for name, why in arm.result.get("loaded", {}).get("failed", {}).items()
    ]
    return list(dict.fromkeys(lines))


def _with_figures(arm: ReportedArm, measured: MeasuredArm) -> ReportedArm:
    words = conclusion_of(measured.meaning)
    return replace(
        arm,
        measurements=measured.measurements,
        cached_tokens=measured.cached_tokens,
        observed=measured.observations,
        semantics=ArmSemantics(verdict=measured.meaning.verdict, cause=words.cause, because=words.because),
        heads=Heads(rollout=_head(measured.rollout_head), trainer=_head(measured.trainer_head)),
    )


def _head(evidence: LatticeEvidence) -> Head:
    return Head(lattice=evidence.verdict, hit_rate=evidence.hit_rate, because=evidence.because)


def _token_figures(arm: MeasuredArm, block: BlockDiagnosis) -> TokenFigures:
    """Return what pictures of an arm's tokens are drawn from, computed while the tokens are at hand."""
    position_T = np.concatenate([np.arange(len(sequence.token_ids)) for sequence in arm.finished.sequences])
    scored = arm.scored
    return token_figures(
        arm.name, block.plan.name, scored.rollout_logprobs_T, scored.trainer_logprobs_T, position_T, scored.entropy_T
    )


def _engaged(finished: Any, block: BlockDiagnosis) -> dict[str, bool | None]:
    """Return whether the arm's factor was in force, compared with the arm it is held against; None if unsupported."""
    arm: Arm = finished.arm
    if arm.factor is None or arm.against is None:
        return {}
    if finished.status != "ok" or arm.name not in block.measured or arm.against not in block.measured:
        return {arm.factor: None}
    level = block.measured[arm.name].observations[arm.factor].level
    other_level = block.measured[arm.against].observations[arm.factor].level
    return {arm.factor: level is not None and other_level is not None and level != other_level}


def _run(diagnosis: Diagnosis) -> Run:
    run = diagnosis.run
    floors = [
        MicroBatchFloor(
            trainer=f"{trainer.dtype} body, {trainer.resolved_head_dtype} head",
            **scores.result["micro_batch_floor"],
            tokens_per_second=scores.result["tokens_per_second"],
        )
        for scores in run.scores.values()
        for trainer in (scores.batch.request.trainer,)
    ]
    return Run(**vars(run.bookkeeping), micro_batch_floors=floors, provenance=run.setup.provenance())
