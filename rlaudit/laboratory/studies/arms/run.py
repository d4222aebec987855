"""Carries a plan of arms out: rollout cells, scoring cells, and their results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.laboratory.rendered_inputs import RenderedInputs
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.run_setup import RunSetup
from rlaudit.laboratory.scoring import Scores, ScoringBatch
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Plan, Role, scoring_request
from rlaudit.laboratory.studies.arms.rollout import SampledSequence, broken_logprobs, read_sequences, rollout_cell
from rlaudit.laboratory.study import releases
from rlaudit.laboratory.study_run import Bookkeeping, StudyRun
from rlaudit.laboratory.treatment import Treatment

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
        """Whether the arm can be measured."""
        return self.status == "ok"


@dataclass(frozen=True)
class FinishedRun:
    """Everything a diagnosis needs."""

    plan: Plan
    arms: Mapping[ArmId, FinishedArm]
    scores: Mapping[str, Scores]
    prompt_token_ids: Sequence[Sequence[int]]
    setup: RunSetup
    bookkeeping: Bookkeeping
    not_run: Mapping[ArmId, str]
    # What the trainer and each engine's environment make of the same prompts; the trainer's come first.
    inputs: Sequence[RenderedInputs]
    # Why arms that were planned are not in the plan here; empty if all are.
    ended_early: str = ""

    def of_block(self, block: BlockPlan) -> dict[str, FinishedArm]:
        """Return the block's arms by name."""
        return {arm.name: self.arms[block.name, arm.name] for arm in block.arms if (block.name, arm.name) in self.arms}


Look = Callable[[FinishedRun], bool]


def execute(plan: Plan, run: StudyRun, look: Look = lambda _run: False) -> FinishedRun:
    """Run every arm of the plan and score what they sampled. Failed arms do not stop the others.

    look: gets the run after each of the arms that decide, and after each block but the last, and returns whether to end
    it. What was sampled is scored then, looked at or not, so that every run scores the same batches. Raises
    NotFinished if the trainer cannot score, OSError if the run directory cannot be written.
    """
    arms: dict[ArmId, FinishedArm] = {}
    not_run: dict[ArmId, str] = {}
    scores: dict[str, Scores] = {}
    inputs = run.rendered_inputs(releases(plan))

    def so_far() -> FinishedRun:
        sampled = _batches(arms.values(), run.context)
        scores.update(_score(plan, run, sampled, scores))
        planned = sum(len(block.arms) for block in plan.blocks)
        remaining = planned - len(arms) - len(not_run)
        requested = sum(batch.asked for batch in sampled.values())
        return FinishedRun(
            _without_unended(plan, arms) if remaining else plan,
            dict(arms),
            {key: scores[key] for key in sampled},
            run.context.prompt_token_ids,
            run.setup,
            run.books(requested),
            dict(not_run),
            inputs,
            f"{remaining} of {planned} arms were not run, as the verdict was reached before them" if remaining else "",
        )

    for _ in _rollouts(plan, run, arms, not_run):
        if look(so_far()):
            break
    return so_far()


def _rollouts(plan: Plan, run: StudyRun, arms: dict[ArmId, FinishedArm], not_run: dict[ArmId, str]) -> Iterator[None]:
    """Run the arms in their order, and yield when the verdict may have changed."""
    titles = _titles(plan)
    run.progress.expect(len(titles))
    # Arms that wait for nothing are requested at once, so that an executor can run them side by side.
    first = _start(
        run, [(block, arm) for block in plan.blocks for arm in block.arms if arm.role is not Role.LAST], titles
    )
    for block in plan.blocks:
        for _ in range(len(block.arms) - len(block.with_role(Role.LAST))):
            ended = next(first)
            arms[block.name, ended.arm.name] = ended
            if block is plan.blocks[0] and ended.arm in block.looked_after:
                yield
        last = block.with_role(Role.LAST)
        needless = {arm.name: reason for arm in last if (reason := _needless(block, arm, arms)) is not None}
        for name, reason in needless.items():
            not_run[block.name, name] = reason
            run.progress.note(f"  not run     {block.name}: {name} ({reason})")
            run.progress.done()
        needed = [(block, arm) for arm in last if arm.name not in needless]
        arms |= {(block.name, ended.arm.name): ended for ended in _start(run, needed, titles)}
        if block is not plan.blocks[-1]:
            yield


def _without_unended(plan: Plan, arms: Mapping[ArmId, FinishedArm]) -> Plan:
    """Return the plan without the arms that have not ended, and without blocks in which no arm has."""
    blocks = []
    for block in plan.blocks:
        ended = tuple(arm for arm in block.arms if (block.name, arm.name) in arms)
        if ended:
            judged = block.parity_name in {arm.name for arm in ended}
            settings = block.settings if judged else block.settings.model_copy(update={"parity": []})
            blocks.append(BlockPlan(settings, ended))
    return replace(plan, blocks=tuple(blocks))


def _titles(plan: Plan) -> dict[ArmId, str]:
    """Return the title of each arm while it runs."""
    arms = [(block, arm) for block in plan.blocks for arm in block.arms]
    return {
        (block.name, arm.name): f"{number}/{len(arms)} {block.name}: {arm.name} (vLLM {arm.treatment.version})"
        for number, (block, arm) in enumerate(arms, start=1)
    }


def _start(run: StudyRun, arms: Sequence[tuple[BlockPlan, Arm]], titles: Mapping[ArmId, str]) -> Iterator[FinishedArm]:
    """Request arms that do not wait for each other now, and yield them when they have ended."""
    cells = [
        engine
        if isinstance(engine := run.engine(arm.treatment.version), Failure)
        else rollout_cell(run.context, block.settings, arm, engine)
        for block, arm in arms
    ]
    titled = [titles[block.name, arm.name] for block, arm in arms]
    outcomes = run.cells.outcomes(list(zip(cells, titled, strict=True)))
    return (_finished(run, arm, cell, outcome) for (_, arm), cell, outcome in zip(arms, cells, outcomes, strict=True))


def _score(
    plan: Plan, run: StudyRun, sampled: Mapping[str, ScoringBatch], before: Mapping[str, Scores]
) -> dict[str, Scores]:
    """Return the scores of each batch with sequences that the trainer has not scored before."""
    keys = list(dict.fromkeys(request.key for request in plan.scoring))
    new = {key: batch.besides(before[key].batch) if key in before else batch for key, batch in sampled.items()}
    new = {key: batch for key, batch in new.items() if batch.sequences}
    run.progress.expect_more(len(new))
    scored = run.scores(
        [(batch, f"trainer {keys.index(key) + 1}/{len(keys)}: {_described(batch)}", None) for key, batch in new.items()]
    )
    added = dict(zip(new, scored, strict=True))
    return {key: before[key].joined(scores) if key in before else scores for key, scores in added.items()}


def _finished(run: StudyRun, arm: Arm, cell: Cell | Failure, outcome: Outcome) -> FinishedArm:
    key = cell.key if isinstance(cell, Cell) else ""
    finished_arm = FinishedArm(arm, outcome.status, outcome.failure, outcome.result, outcome.usage, key)
    if not isinstance(cell, Cell) or outcome.status != "ok":
        return finished_arm
    sequences = read_sequences(run.cells.directory(cell))
    fault = broken_logprobs(sequences)
    if fault is not None:
        return replace(finished_arm, status="failed", failure=fault)
    return replace(finished_arm, sequences=sequences)


def _needless(block: BlockPlan, arm: Arm, arms: Mapping[ArmId, FinishedArm]) -> str | None:
    """Return why an arm need not run: leaving out a fix shows nothing if the engine is the same without it."""
    if arm.role is not Role.LAST:
        return None
    candidate = arms.get((block.name, "candidate"))
    tried = [arms[block.name, first.name] for first in block.with_role(Role.FIRST) if first.factor == arm.factor]
    if candidate is None or not candidate.ok or not tried or not all(first.ok for first in tried):
        return None
    if any(_in_force(first) != _in_force(candidate) for first in tried):
        return None
    return f"the loaded engine is the same with and without {arm.factor}"


def _in_force(finished_arm: FinishedArm) -> tuple[Any, Treatment]:
    """Return what the engine loaded, and the treatment without its engine arguments."""
    besides = replace(finished_arm.arm.treatment, engine_args={}, compiles=None, captures_graphs=None, requires=())
    return finished_arm.result["resolved"], besides


def _batches(arms: Iterable[FinishedArm], context: RolloutContext) -> dict[str, ScoringBatch]:
    batches: dict[str, ScoringBatch] = {}
    for finished_arm in arms:
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
