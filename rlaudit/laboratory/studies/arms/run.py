"""Carries a plan of arms out: rollout cells, scoring cells, and what they left."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.laboratory.course import Bookkeeping, Course
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.scoring import Scores, ScoringBatch
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Plan, Role, scoring_request
from rlaudit.laboratory.studies.arms.rollout import SampledSequence, broken_logprobs, read_sequences, rollout_cell
from rlaudit.laboratory.surroundings import Surroundings
from rlaudit.laboratory.treatment import Treatment
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


def execute(plan: Plan, folder: RunFolder, surroundings: Surroundings, progress: Progress) -> FinishedRun:
    """Run every arm of the plan and score what they sampled. Failed arms do not stop the others.

    Raises NotFinished when the model's tokenizer cannot be read, or when the trainer cannot score, which is tried
    before the first arm; OSError where the run directory cannot be written.
    """
    course = Course(plan, folder, surroundings, progress)
    arms: dict[ArmId, FinishedArm] = {}
    not_run: dict[ArmId, str] = {}
    total = sum(len(block.arms) for block in plan.blocks)
    progress.expect(total)
    for block in plan.blocks:
        for asked in ([arm for arm in block.arms if arm.role is not Role.LAST], block.with_role(Role.LAST)):
            reasons = {arm.name: reason for arm in asked if (reason := _needless(block, arm, arms)) is not None}
            for name, reason in reasons.items():
                not_run[block.name, name] = reason
                progress.note(f"  not run     {block.name}: {name} ({reason})")
                progress.done()
            needed = [arm for arm in asked if arm.name not in reasons]
            titles = [
                f"{number}/{total} {block.name}: {arm.name} (vLLM {arm.treatment.version})"
                for number, arm in enumerate(needed, start=len(arms) + len(not_run) + 1)
            ]
            for finished_arm in _rolled(course, block, needed, titles):
                arms[block.name, finished_arm.arm.name] = finished_arm
    batches = _batches(arms, course.context)
    progress.expect(len(batches))
    scores = {
        key: course.scores(batch, f"trainer {number}/{len(batches)}: {_described(batch)}")
        for number, (key, batch) in enumerate(batches.items(), start=1)
    }
    return FinishedRun(plan, arms, scores, course.context.prompt_token_ids, surroundings, course.books(), not_run)


def _rolled(course: Course, block: BlockPlan, arms: Sequence[Arm], titles: Sequence[str]) -> Iterator[FinishedArm]:
    """Arms that do not wait for each other."""
    engines = course.surroundings.engines
    cells = {
        arm.name: rollout_cell(course.context, block.settings, arm, engine)
        for arm in arms
        if not isinstance(engine := engines[arm.treatment.version], Failure)
    }
    titled = [(cells[arm.name], title) for arm, title in zip(arms, titles, strict=True) if arm.name in cells]
    outcomes = course.runner.outcomes(titled)
    for arm in arms:
        engine = engines[arm.treatment.version]
        if isinstance(engine, Failure):
            course.progress.done()
            yield FinishedArm(arm, "failed", engine)
        else:
            yield _sampled(course, arm, cells[arm.name], next(outcomes))


def _sampled(course: Course, arm: Arm, cell: Cell, outcome: Outcome) -> FinishedArm:
    finished_arm = FinishedArm(arm, outcome.status, outcome.failure, outcome.result, outcome.usage, cell.key)
    if outcome.status != "ok":
        return finished_arm
    sequences = read_sequences(course.runner.directory(cell))
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


def _batches(arms: Mapping[ArmId, FinishedArm], context: RolloutContext) -> dict[str, ScoringBatch]:
    batches: dict[str, ScoringBatch] = {}
    for finished_arm in arms.values():
        if not finished_arm.ok or finished_arm.arm.model is not None:
            continue
        request = scoring_request(finished_arm.arm)
        batch = batches.setdefault(request.key, ScoringBatch(request))
        for sequence in finished_arm.sequences:
            batch.add(context.prompt_token_ids[sequence.prompt], sequence.token_ids)
    return batches


def _described(batch: ScoringBatch) -> str:
    settings = batch.request.trainer
    return (
        f"{len(batch.sequences)} distinct of {batch.asked} sequences, "
        f"{settings.dtype} body, {settings.resolved_head_dtype} head"
    )
