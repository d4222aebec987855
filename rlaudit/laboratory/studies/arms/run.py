"""Carries a plan of arms out: rollout cells, scoring cells, and what they left."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.run_setup import RunSetup
from rlaudit.laboratory.scoring import Scores, ScoringBatch
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, Plan, Role, scoring_request
from rlaudit.laboratory.studies.arms.rollout import SampledSequence, broken_logprobs, read_sequences, rollout_cell
from rlaudit.laboratory.study_run import Bookkeeping, StudyRun
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
    setup: RunSetup
    bookkeeping: Bookkeeping
    not_run: Mapping[ArmId, str]
    # Why arms that were planned are not in the plan here; empty if all are.
    ended_early: str = ""

    def of_block(self, block: BlockPlan) -> dict[str, FinishedArm]:
        """Return the block's arms by name."""
        return {arm.name: self.arms[block.name, arm.name] for arm in block.arms if (block.name, arm.name) in self.arms}


Look = Callable[[FinishedRun], bool]


def execute(
    plan: Plan, folder: RunFolder, setup: RunSetup, progress: Progress, look: Look = lambda _run: False
) -> FinishedRun:
    """Run every arm of the plan and score what they sampled. Failed arms do not stop the others.

    look: is shown the run when the arms that decide have ended, and after each block but the last, and returns whether
    that is enough: no further arm is run then.

    Raises NotFinished when the model's tokenizer cannot be read, or when the trainer cannot score, which is tried
    before the first arm; OSError if the run directory cannot be written.
    """
    study_run = StudyRun(plan, folder, setup, progress)
    arms: dict[ArmId, FinishedArm] = {}
    not_run: dict[ArmId, str] = {}
    titles = _titles(plan)
    progress.expect(len(titles))
    # Arms that wait for nothing are asked for at once: an executor may run them meanwhile.
    first = {
        block.name: _rolled(study_run, block, [arm for arm in block.arms if arm.role is not Role.LAST], titles)
        for block in plan.blocks
    }
    scoring = _Scoring(plan, study_run)

    def is_enough() -> bool:
        """Show the run as far as it is."""
        known = dict(arms)
        scoring.ask_early(known)
        seen = _so_far(plan, known)
        return look(FinishedRun(seen, known, scoring.answers(known), study_run.context.prompt_token_ids, setup,
                                study_run.books(), dict(not_run)))  # fmt: skip

    for number, block in enumerate(plan.blocks, start=1):
        for finished_arm in first[block.name]:
            arms[block.name, finished_arm.arm.name] = finished_arm
            if number == 1 and finished_arm.arm == block.deciding[-1] and is_enough():
                return _ended(plan, arms, scoring, study_run, not_run)
        last = block.with_role(Role.LAST)
        reasons = {arm.name: reason for arm in last if (reason := _needless(block, arm, arms)) is not None}
        for name, reason in reasons.items():
            not_run[block.name, name] = reason
            progress.note(f"  not run     {block.name}: {name} ({reason})")
            progress.done()
        needed = [arm for arm in last if arm.name not in reasons]
        arms |= {(block.name, one.arm.name): one for one in _rolled(study_run, block, needed, titles)}
        scoring.ask(arms, not_run)
        if number < len(plan.blocks) and is_enough():
            return _ended(plan, arms, scoring, study_run, not_run)
    return _ended(plan, arms, scoring, study_run, not_run)


def _ended(
    plan: Plan,
    arms: Mapping[ArmId, FinishedArm],
    scoring: "_Scoring",
    study_run: StudyRun,
    not_run: Mapping[ArmId, str],
) -> FinishedRun:
    """Return the run with the arms that there are."""
    planned = sum(len(block.arms) for block in plan.blocks)
    left = planned - len(arms) - len(not_run)
    early = f"{left} of {planned} arms were not run, as the verdict was reached before them" if left else ""
    return FinishedRun(
        _so_far(plan, arms) if left else plan,
        arms,
        scoring.answers(arms),
        study_run.context.prompt_token_ids,
        study_run.setup,
        study_run.books(),
        not_run,
        early,
    )


def _so_far(plan: Plan, arms: Mapping[ArmId, FinishedArm]) -> Plan:
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
    """Return what each arm is called while it runs."""
    named = [(block, arm) for block in plan.blocks for arm in block.arms]
    return {
        (block.name, arm.name): f"{number}/{len(named)} {block.name}: {arm.name} (vLLM {arm.treatment.version})"
        for number, (block, arm) in enumerate(named, start=1)
    }


def _rolled(
    study_run: StudyRun, block: BlockPlan, arms: Sequence[Arm], titles: Mapping[ArmId, str]
) -> Iterator[FinishedArm]:
    """Ask for arms that do not wait for each other now, and yield them when they have ended."""
    cells = [
        engine
        if isinstance(engine := study_run.engine(arm.treatment.version), Failure)
        else rollout_cell(study_run.context, block.settings, arm, engine)
        for arm in arms
    ]
    outcomes = study_run.outcomes([(cell, titles[block.name, arm.name]) for arm, cell in zip(arms, cells, strict=True)])
    return (_sampled(study_run, arm, cell, outcome) for arm, cell, outcome in zip(arms, cells, outcomes, strict=True))


class _Scoring:
    """Asks the trainer for scores: a batch for each way of scoring, as soon as all its arms have ended. For a look at
    the run before that, it asks for what has been sampled so far.
    """

    def __init__(self, plan: Plan, study_run: StudyRun) -> None:
        self._study_run = study_run
        self._arms: dict[str, set[ArmId]] = {}
        for block in plan.blocks:
            for arm in block.arms:
                if arm.model is None:
                    self._arms.setdefault(scoring_request(arm).key, set()).add((block.name, arm.name))
        # By the key of the request: all that was requested, what is not answered yet, and the answers.
        self._covered: dict[str, ScoringBatch] = {}
        self._asked: dict[str, list[Callable[[], Scores]]] = {}
        self._answers: dict[str, Scores] = {}

    def ask(self, arms: Mapping[ArmId, FinishedArm], not_run: Mapping[ArmId, str]) -> None:
        """Ask for the batches that have become whole."""
        known = arms.keys() | not_run.keys()
        self._ask(arms, {key for key, needed in self._arms.items() if needed <= known})

    def ask_early(self, arms: Mapping[ArmId, FinishedArm]) -> None:
        """Ask for everything that was sampled so far."""
        self._ask(arms, set(self._arms))

    def _ask(self, arms: Mapping[ArmId, FinishedArm], wanted: set[str]) -> None:
        for key, batch in _batches(arms, self._study_run.context).items():
            if key not in wanted:
                continue
            rest = self._besides_earlier(key, batch)
            if not rest.sequences:
                self._study_run.asked_again(rest.asked)
                continue
            self._study_run.progress.expect_more(1)
            title = f"trainer {list(self._arms).index(key) + 1}/{len(self._arms)}: {_described(rest)}"
            self._asked.setdefault(key, []).append(self._study_run.scores(rest, title))

    def _besides_earlier(self, key: str, batch: ScoringBatch) -> ScoringBatch:
        """Return the sequences of a batch that were not requested before it."""
        earlier = self._covered.get(key)
        self._covered[key] = batch
        return batch if earlier is None else batch.besides(earlier)

    def answers(self, arms: Mapping[ArmId, FinishedArm]) -> dict[str, Scores]:
        """Return the scores of all batches, in the order of the arms."""
        keys = [scoring_request(one.arm).key for one in arms.values() if one.ok and one.arm.model is None]
        for key in dict.fromkeys(keys):
            for answer in self._asked.pop(key, ()):
                found = answer()
                self._answers[key] = self._answers[key].joined(found) if key in self._answers else found
        return {key: self._answers[key] for key in dict.fromkeys(keys) if key in self._answers}


def _sampled(study_run: StudyRun, arm: Arm, cell: Cell | Failure, outcome: Outcome) -> FinishedArm:
    key = cell.key if isinstance(cell, Cell) else ""
    finished_arm = FinishedArm(arm, outcome.status, outcome.failure, outcome.result, outcome.usage, key)
    if not isinstance(cell, Cell) or outcome.status != "ok":
        return finished_arm
    sequences = read_sequences(study_run.runner.directory(cell))
    fault = broken_logprobs(sequences)
    if fault is not None:
        return replace(finished_arm, status="failed", failure=fault)
    return replace(finished_arm, sequences=sequences)


def _needless(block: BlockPlan, arm: Arm, arms: Mapping[ArmId, FinishedArm]) -> str | None:
    """Return why an arm need not run: leaving a fix out of parity says nothing if the engine is the same without it."""
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
    """Return what the engine loaded, and what a treatment holds besides engine arguments."""
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
