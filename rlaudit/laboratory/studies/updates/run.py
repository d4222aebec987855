"""Carries a weight-update recipe out: checkpoints, engine starts, the weights that each really held, and scores.

Order matters: weights are read back before anything is scored, because a part that was never updated would otherwise
look like stale keys and values in every case.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.laboratory.engine_cell import engine_cell
from rlaudit.laboratory.moving_weights import seconds_to_move, stored_bytes
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.run_setup import RunSetup
from rlaudit.laboratory.scoring import ScoringBatch
from rlaudit.laboratory.studies.updates.cases import UpdateCase
from rlaudit.laboratory.studies.updates.checkpoints import CheckpointStore
from rlaudit.laboratory.studies.updates.plan import EngineStart, UpdatePlan
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe
from rlaudit.laboratory.studies.updates.records import EngineRecord, read_record
from rlaudit.laboratory.studies.updates.scored_tokens import ScoredTokens, Scores, wanted_scores
from rlaudit.laboratory.study_run import Bookkeeping, StudyRun
from rlaudit.laboratory.weight_path import ADAPTER, MERGED


@dataclass(frozen=True)
class FinishedUpdates:
    """Everything the findings need."""

    plan: UpdatePlan
    setup: RunSetup
    records: tuple[EngineRecord, ...]
    scores: Scores
    bookkeeping: Bookkeeping

    @property
    def recipe(self) -> UpdateRecipe:
        """The recipe that was carried out."""
        return self.plan.recipe

    def tokens_of(self, record: EngineRecord, case: UpdateCase) -> ScoredTokens:
        """Return the tokens of a case, with the scores by which this engine is judged."""
        return ScoredTokens(record.of(case), self.scores, record.held)


def execute(plan: UpdatePlan, run: StudyRun) -> FinishedUpdates:
    """Run every engine start and score what it sampled. An engine start that fails does not stop the others.

    Raises NotFinished when checkpoints or scores could not be made, OSError if the run directory cannot be written.
    """
    store = CheckpointStore(plan.recipe, run)
    if any(start.path != ADAPTER for start in plan.starts):
        store.write_next()
    if any(start.path == ADAPTER for start in plan.starts):
        store.write_adapters()
    records = [replace(record, held=_held(record, store)) for record in _records(plan, run, store)]
    return FinishedUpdates(plan, run.setup, tuple(records), _score(records, plan, run, store), run.books())


def _held(record: EngineRecord, store: CheckpointStore) -> str:
    """Return what this engine held as version 1: a mixture if its read back shows something old, or the adapter."""
    if record.start.path == ADAPTER:
        return MERGED
    return store.write_mixture(record.parts.old) if record.parts is not None and record.parts.old else "1"


def _score(records: Sequence[EngineRecord], plan: UpdatePlan, run: StudyRun, store: CheckpointStore) -> Scores:
    """Return every score that the analysis needs, from one job per checkpoint: equal engines sample equal tokens.

    Raises NotFinished if the trainer cannot score.
    """
    (request,) = plan.scoring
    batches: dict[str, ScoringBatch] = {}
    for name, flight in (wanted for record in records for wanted in wanted_scores(record)):
        if flight.token_ids:
            batches.setdefault(name, ScoringBatch(request)).add(flight.prompt_token_ids, flight.token_ids)
    scored = run.scores(
        [
            (batch, f"trainer: {len(batch.sequences)} sequences with the weights {name}", store.checkpoint(name))
            for name, batch in sorted(batches.items())
        ]
    )
    return {name: scores.by_sequence() for name, scores in zip(sorted(batches), scored, strict=True)}


def _records(plan: UpdatePlan, run: StudyRun, store: CheckpointStore) -> Iterator[EngineRecord]:
    """Run every engine start and yield its record."""
    cells: list[Cell | Failure] = []
    for start in plan.starts:
        engine = run.engine(start.version)
        cells.append(engine if isinstance(engine, Failure) else _cell(plan, start, run.context, store, engine))
    titles = [f"{number}/{len(plan.starts)} {start.name}" for number, start in enumerate(plan.starts, 1)]
    outcomes = run.cells.outcomes(list(zip(cells, titles, strict=True)))
    for start, cell, outcome in zip(plan.starts, cells, outcomes, strict=True):
        if isinstance(cell, Cell) and outcome.status == "ok":
            yield read_record(start, run.cells.directory(cell), outcome.result, run.context.prompt_token_ids, cell.key)
        else:
            key = cell.key if isinstance(cell, Cell) else ""
            yield EngineRecord(start, outcome.status, outcome.why, "", cell_key=key)


def _cell(
    plan: UpdatePlan, start: EngineStart, context: RolloutContext, store: CheckpointStore, environment: Environment
) -> Cell:
    """Return the job of one engine start."""
    recipe, size = plan.recipe, stored_bytes(context.model, context.revision)
    checkpoints = {name: store.checkpoint(name) for name in start.checkpoints}
    return engine_cell(
        context,
        environment,
        script=ENGINE.update,
        sources=ENGINE.update_with,
        engine=start.wanted,
        job={
            "path": start.path,
            "transport": start.transport,
            "checkpoints": {name: checkpoint.path for name, checkpoint in checkpoints.items()},
            **({"adapters": store.adapters} if start.path == ADAPTER else {}),
            "prompt_token_ids": [list(prompt) for prompt in context.prompt_token_ids],
            "sampling": {"temperature": 1.0, "ignore_eos": True},
            "runs": dict(plan.runs),
            "drain_seconds": recipe.weight_updates.drain_seconds + seconds_to_move(size),
            "cases": [case.as_job() for case in start.cases],
        },
        timeout_minutes=recipe.timeout_minutes + seconds_to_move(size, start.moves) / 60.0,
        identity={"checkpoints": [checkpoint.identity for checkpoint in checkpoints.values()]},
        # Which token meets an update depends on the clock.
        timed=True,
    )
