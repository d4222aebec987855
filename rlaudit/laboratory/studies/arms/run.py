"""Carries a plan out: environments, model, prompts, rollout cells, scoring cells, and what they left.

The run directory (run_folder.py) is the only state and readable by hand. A cell's folder has job.json, identity.json,
events.jsonl, log.txt, samples.jsonl or scores.npz, result.json, usage.json, and seal.json.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlaudit.engines.cells.launch import Failure
from rlaudit.engines.environments.environment import Environment
from rlaudit.errors import NotFinished
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.runner import Runner
from rlaudit.laboratory.scoring import Scores, ScoringBatch, ScoringRequest, read_scores, scoring_cell
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Plan, Role
from rlaudit.laboratory.studies.arms.rollout import (
    RolloutContext,
    SampledSequence,
    broken_logprobs,
    read_sequences,
    rollout_cell,
)
from rlaudit.laboratory.surroundings import Surroundings
from rlaudit.laboratory.treatment import Treatment
from rlaudit.laboratory.trial import try_trainer
from rlaudit.progress import Progress

ArmId = tuple[str, str]


@dataclass(frozen=True)
class FinishedArm:
    """An arm after its engine ended: what it resolved and sampled, or why it has nothing."""

    arm: Arm
    status: str
    failure: Failure | None
    result: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    cell_key: str = ""
    sequences: tuple[SampledSequence, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is something to measure."""
        return self.status == "ok"


@dataclass(frozen=True)
class Bookkeeping:
    """What a run cost: seconds in all and inside cells, starts, and sequences asked for against scored.

    damaged: files that were not as an earlier run had left them, in sentences; what they belong to was made again.
    """

    seconds: float
    cell_seconds: float
    cells_run: int
    cells_kept: int
    sequences_asked: int
    sequences_scored: int
    peak_memory_mib: float
    set_up_seconds: float
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class FinishedRun:
    """Everything a diagnosis needs."""

    plan: Plan
    arms: Mapping[ArmId, FinishedArm]
    scores: Mapping[str, Scores]
    prompt_token_ids: Sequence[Sequence[int]]
    surroundings: Surroundings
    bookkeeping: Bookkeeping
    not_run: Mapping[ArmId, str]

    def of_block(self, block: BlockPlan) -> dict[str, FinishedArm]:
        """The block's arms by name."""
        return {arm.name: self.arms[block.name, arm.name] for arm in block.arms if (block.name, arm.name) in self.arms}


def scoring_request(arm: Arm) -> ScoringRequest:
    """How the trainer scores an arm's sequences."""
    sampling = {name: value for name, value in arm.treatment.sampling.items() if name != "max_tokens"}
    return ScoringRequest(arm.treatment.trainer, sampling)


def execute(plan: Plan, folder: RunFolder, surroundings: Surroundings, progress: Progress) -> FinishedRun:
    """Run every arm of the plan and score what they sampled. Failed arms do not stop the others.

    Raises NotFinished when the model's tokenizer cannot be read, or when the trainer cannot score, which is tried
    before the first arm; OSError where the run directory cannot be written.
    """
    started = time.monotonic()
    folder.begin(_as_document(plan, surroundings))
    for said in folder.damaged:
        progress.note(f"  {'damaged':<11} {said}; it is made again")
    set_up_seconds = surroundings.set_up_seconds
    runner = Runner(folder, surroundings, progress)
    context = surroundings.rollout_context(plan.recipe, runner.outcome)
    try_trainer(runner, context, _requests(plan), surroundings.trainer)
    arms: dict[ArmId, FinishedArm] = {}
    not_run: dict[ArmId, str] = {}
    total = sum(len(block.arms) for block in plan.blocks)
    progress.expect(total)
    for block in plan.blocks:
        for arm in block.arms:
            reason = _needless(block, arm, arms)
            if reason is not None:
                not_run[block.name, arm.name] = reason
                progress.note(f"  not run     {block.name}: {arm.name} ({reason})")
                progress.done()
                continue
            title = f"{len(arms) + len(not_run) + 1}/{total} {block.name}: {arm.name} (vLLM {arm.treatment.version})"
            engine = surroundings.engines[arm.treatment.version]
            if isinstance(engine, Failure):
                arms[block.name, arm.name] = FinishedArm(arm, "failed", engine)
                progress.done()
                continue
            arms[block.name, arm.name] = _roll(runner, context, block, arm, engine, title)
    batches = _batches(plan, arms, context)
    progress.expect(len(batches))
    scores = {
        key: _score(runner, context, batch, surroundings.trainer, number, len(batches))
        for number, (key, batch) in enumerate(batches.items(), start=1)
    }
    bookkeeping = Bookkeeping(
        seconds=time.monotonic() - started,
        cell_seconds=runner.cell_seconds,
        cells_run=runner.cells_run,
        cells_kept=runner.cells_kept,
        sequences_asked=sum(batch.asked for batch in batches.values()),
        sequences_scored=sum(len(batch.sequences) for batch in batches.values()),
        peak_memory_mib=runner.peak_memory_mib,
        set_up_seconds=set_up_seconds,
        damaged=tuple(folder.damaged),
    )
    return FinishedRun(plan, arms, scores, context.prompt_token_ids, surroundings, bookkeeping, not_run)


def _roll(
    runner: Runner,
    context: RolloutContext,
    block: BlockPlan,
    arm: Arm,
    engine: Environment,
    title: str,
) -> FinishedArm:
    cell = rollout_cell(context, block.settings, arm, engine)
    outcome = runner.outcome(cell, title)
    directory = runner.directory(cell)
    finished_arm = FinishedArm(arm, outcome.status, outcome.failure, outcome.result, outcome.usage, cell.key)
    if outcome.status != "ok":
        return finished_arm
    sequences = read_sequences(directory)
    fault = broken_logprobs(sequences)
    if fault is not None:
        return replace(finished_arm, status="failed", failure=fault)
    return replace(finished_arm, sequences=sequences)


def _needless(block: BlockPlan, arm: Arm, arms: Mapping[ArmId, FinishedArm]) -> str | None:
    """Why an arm need not run: leaving a fix out of parity says nothing when the engine is the same with it and
    without."""
    if arm.role is not Role.LAST:
        return None
    candidate = arms.get((block.name, "candidate"))
    tried = [arms[block.name, first.name] for first in block.with_role(Role.FIRST) if first.factor == arm.factor]
    if candidate is None or not candidate.ok or not tried or not all(first.ok for first in tried):
        return None
    if any(_in_force(first) != _in_force(candidate) for first in tried):
        return None
    return f"{arm.factor} changed nothing in the loaded engine"


def _in_force(finished_arm: FinishedArm) -> tuple[Any, Treatment]:
    """What the engine loaded, and what a treatment holds besides engine arguments."""
    besides = replace(finished_arm.arm.treatment, engine_args={}, compiles=None, captures_graphs=None, requires=())
    return finished_arm.result["resolved"], besides


def _requests(plan: Plan) -> list[ScoringRequest]:
    """How the trainer will score, as far as it is known before any arm ran."""
    return [scoring_request(arm) for block in plan.blocks for arm in block.arms if arm.model is None]


def _batches(plan: Plan, arms: Mapping[ArmId, FinishedArm], context: RolloutContext) -> dict[str, ScoringBatch]:
    batches: dict[str, ScoringBatch] = {}
    for finished_arm in arms.values():
        if not finished_arm.ok or finished_arm.arm.model is not None:
            continue
        request = scoring_request(finished_arm.arm)
        batch = batches.setdefault(request.key, ScoringBatch(request))
        for sequence in finished_arm.sequences:
            batch.add(context.prompt_token_ids[sequence.prompt], sequence)
    return batches


def _score(
    runner: Runner,
    context: RolloutContext,
    batch: ScoringBatch,
    trainer: Environment,
    number: int,
    total: int,
) -> Scores:
    settings = batch.request.trainer
    cell = scoring_cell(context, batch, trainer)
    title = (
        f"trainer {number}/{total}: {len(batch.sequences)} distinct of {batch.asked} sequences, "
        f"{settings.dtype} body, {settings.resolved_head_dtype} head"
    )
    outcome = runner.outcome(cell, title)
    if outcome.status != "ok":
        why = outcome.failure.message if outcome.failure else "no reason given"
        raise NotFinished(
            f"the trainer could not score the sequences: {why}", f"its log: {runner.directory(cell)}/log.txt"
        )
    return read_scores(runner.directory(cell), batch, outcome.result)


def _as_document(plan: Plan, surroundings: Surroundings) -> dict[str, Any]:
    """The recipe as it was understood, and everything needed to repeat the run."""
    return {
        "recipe": plan.recipe.model_dump(mode="json", by_alias=True),
        "arms": [
            {"block": arm.block, "name": arm.name, "role": arm.role.value, "version": arm.treatment.version}
            for block in plan.blocks
            for arm in block.arms
        ],
        "provenance": surroundings.provenance(),
    }
