"""Carries a weight-update recipe out: checkpoints, engine starts, what each really held, and scores.

Order matters: what an engine held is read back before anything is scored, because a part that was never updated would
otherwise look like stale keys and values in every case.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.hardware.ieee_float32 import kernel_cache
from rlaudit.engines.models.model_identity import identities_in
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.runner import Runner
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.studies.arms.rollout import EXTENSION, GENERATE, RolloutContext
from rlaudit.laboratory.studies.updates.checkpoint_store import CheckpointStore
from rlaudit.laboratory.studies.updates.locate import Located
from rlaudit.laboratory.studies.updates.matrix import COLD_AFTER, EngineStart, plan_starts, unshared
from rlaudit.laboratory.studies.updates.parts import PartsRead, read_parts
from rlaudit.laboratory.studies.updates.records import EngineRecord, failed_record, read_record
from rlaudit.laboratory.studies.updates.score_keeper import ScoreKeeper
from rlaudit.laboratory.studies.updates.scoring import Scorebook, wanted_scores
from rlaudit.laboratory.studies.updates.settings import UpdateRecipe
from rlaudit.laboratory.surroundings import Surroundings
from rlaudit.laboratory.treatment import TrainerSettings
from rlaudit.laboratory.trial import try_trainer
from rlaudit.progress import Progress

UPDATE = GENERATE.with_name("update_weights.py")
BESIDE = ("steerable_engine", "update_session", "request_in_flight", "engine_processes")
SHIPPED_WITH = (
    *(UPDATE.with_name(f"{name}.py") for name in BESIDE),
    GENERATE,
    EXTENSION / "rlaudit_weight_update.py",
)


@dataclass(frozen=True)
class FinishedUpdates:
    """Everything the findings need.

    held: per engine start, what its first read back found. effective: version to the mixture that stands for it where
    something was old. located: what scores alone say of starts whose old parts nothing else explains. damaged: files
    that were not as an earlier run had left them; what they belong to was made again.
    """

    recipe: UpdateRecipe
    surroundings: Surroundings
    records: tuple[EngineRecord, ...]
    held: Mapping[str, PartsRead | None]
    effective: Mapping[str, Mapping[int, str]]
    located: Mapping[str, Located]
    book: Scorebook
    seconds: float
    cells_run: int
    cells_kept: int
    peak_memory_mib: float
    damaged: tuple[str, ...] = ()

    def book_of(self, record: EngineRecord) -> Scorebook:
        """The scores as this engine is to be judged by."""
        return self.book.of_engine(self.effective[record.start.name])


def execute(recipe: UpdateRecipe, folder: RunFolder, surroundings: Surroundings, progress: Progress) -> FinishedUpdates:
    """Run every engine start and score what it sampled. An engine start that fails does not stop the others.

    Raises NotFinished when checkpoints or scores could not be made, OSError where the run directory cannot be written.
    """
    started = time.monotonic()
    asked = surroundings.prompts.prompts[: recipe.prompts_used]
    starts = plan_starts(recipe, len(asked), surroundings.accelerator.kind)
    folder.begin(_as_document(recipe, starts, surroundings))
    for said in folder.damaged:
        progress.note(f"  {'damaged':<11} {said}; it is made again")
    runner = Runner(folder, surroundings, progress)
    context = surroundings.rollout_context(recipe.as_recipe(), runner.outcome)
    request = ScoringRequest(TrainerSettings(dtype=recipe.dtype), {"temperature": 1.0})
    try_trainer(runner, context, [request], surroundings.trainer)
    prompts = [list(prompt) for prompt in context.prompt_token_ids[: recipe.prompts_used]]
    everyone = [*prompts, *unshared(prompts)]
    store = CheckpointStore(recipe, context, surroundings.trainer, runner, folder.folder / "checkpoints")
    store.write_versions(versions_needed(starts))
    store.write_faults(list(dict.fromkeys(case.fault for start in starts for case in start.cases if case.fault)))
    records = tuple(
        _run_start(
            recipe, start, context, everyone, store, surroundings, runner, f"{number}/{len(starts)} {start.name}"
        )
        for number, start in enumerate(starts, start=1)
    )
    held = {record.start.name: _held(record) for record in records}
    effective = {record.start.name: _effective(record, held[record.start.name], store) for record in records}
    keeper = ScoreKeeper(recipe, context, surroundings.trainer, runner, store)
    _ask_for_scores(records, effective, store, keeper)
    keeper.score()
    located = {}
    for record in records:
        explained = keeper.locate_unexplained(record, effective[record.start.name])
        if explained is not None:
            located[record.start.name] = explained
            if explained.fits:
                effective[record.start.name] = _mixtures(record, explained.tensors, store)
    _ask_for_scores(records, effective, store, keeper)
    keeper.score()
    return FinishedUpdates(
        recipe=recipe,
        surroundings=surroundings,
        records=records,
        held=held,
        effective=effective,
        located=located,
        book=keeper.book,
        seconds=time.monotonic() - started,
        cells_run=runner.cells_run,
        cells_kept=runner.cells_kept,
        peak_memory_mib=runner.peak_memory_mib,
        damaged=tuple(folder.damaged),
    )


def _as_document(recipe: UpdateRecipe, starts: Sequence[EngineStart], surroundings: Surroundings) -> dict[str, Any]:
    """The recipe as it was understood, and everything needed to repeat the run."""
    return {
        "recipe": recipe.model_dump(mode="json", by_alias=True),
        "arms": [
            {"block": "weight updates", "name": start.name, "role": "engine start", "version": start.version}
            for start in starts
        ],
        "provenance": surroundings.provenance(),
    }


def _ask_for_scores(
    records: Sequence[EngineRecord],
    effective: Mapping[str, Mapping[int, str]],
    store: CheckpointStore,
    keeper: ScoreKeeper,
) -> None:
    """Ask for every score that the analysis needs; what is there already is not asked for again."""
    for record in records:
        for name, flights in wanted_scores(record, effective[record.start.name]).items():
            keeper.ask(name, flights)
        for told in record.read_backs:
            read = read_parts(told)
            if read is not None and read.old and read.believed != "0":
                cold = [flight for flight in record.flights if (flight.case, flight.run) == (told.case, COLD_AFTER)]
                keeper.ask(store.write_mixture(int(read.believed), read.old), cold)


def _effective(record: EngineRecord, held: PartsRead | None, store: CheckpointStore) -> dict[int, str]:
    """Version to mixture, where an honest update of this engine left something old."""
    return _mixtures(record, held.old, store) if held is not None and held.old and held.believed != "0" else {}


def _mixtures(record: EngineRecord, old: Sequence[str], store: CheckpointStore) -> dict[int, str]:
    used = {version for flight in record.flights for version in flight.versions if version}
    return {version: store.write_mixture(version, old) for version in sorted(used)}


def versions_needed(starts: Sequence[EngineStart]) -> int:
    """The highest version that any step loads."""
    steps = [step for start in starts for case in start.cases for step in case.steps if step["do"] == "update"]
    return max((int(step["version"]) for step in steps if step["version"].isdigit()), default=1)


def checkpoints_of(start: EngineStart) -> list[str]:
    """The checkpoints that a start loads, all versions below them included: a read back compares with those."""
    loaded = [step["version"] for case in start.cases for step in case.steps if step["do"] == "update"]
    highest = max([1, *(int(version) for version in loaded if version.isdigit())])
    return [*map(str, range(highest + 1)), *(version for version in loaded if not version.isdigit())]


def _run_start(
    recipe: UpdateRecipe,
    start: EngineStart,
    context: RolloutContext,
    prompts: Sequence[Sequence[int]],
    store: CheckpointStore,
    surroundings: Surroundings,
    runner: Runner,
    title: str,
) -> EngineRecord:
    engine = surroundings.engines[start.version]
    if isinstance(engine, Failure):
        return failed_record(start, "failed", engine.message, "")
    names = checkpoints_of(start)
    paths = {name: store.path(name) for name in names}
    identity = [store.identity(name) for name in names]
    cell = engine_cell(recipe, start, context, prompts, paths, identity, engine)
    outcome = runner.outcome(cell, title)
    if outcome.status != "ok":
        return failed_record(start, outcome.status, _why(outcome), cell.key)
    return read_record(start, runner.directory(cell), outcome.result, prompts, cell.key)


def engine_cell(
    recipe: UpdateRecipe,
    start: EngineStart,
    context: RolloutContext,
    prompts: Sequence[Sequence[int]],
    checkpoints: Mapping[str, str],
    identity: Sequence[str],
    environment: Environment,
) -> Cell:
    """The job of one engine start. `identity` tells these checkpoints from others in the same place."""
    declared = start.variables(context.device)
    return Cell(
        job={
            "script": str(UPDATE),
            "model": context.model,
            "revision": context.recipe.revision,
            "trust_remote_code": recipe.trust_remote_code,
            "engine": start.expected(context.machine, context.model).as_job(),
            "engine_args": dict(start.engine_args),
            "path": start.path,
            "checkpoints": dict(checkpoints),
            "prompt_token_ids": [list(prompt) for prompt in prompts],
            "sampling": {"temperature": 1.0, "ignore_eos": True},
            "drain_seconds": recipe.weight_updates.drain_seconds,
            "cases": [case.as_job() for case in start.cases],
        },
        command=environment.command,
        variables={**environment.variables, **kernel_cache(declared), "PYTHONPATH": str(EXTENSION), **declared},
        timeout_seconds=60.0 * recipe.timeout_minutes,
        identity={
            "variables": declared,
            "environment": {"name": environment.spec.name, "lock": list(environment.lock)},
            "model": dict(context.model_identity),
            "named_in_engine_args": identities_in(start.engine_args),
            "accelerator": dict(context.accelerator_identity),
            "checkpoints": list(identity),
        },
        sources=SHIPPED_WITH,
    )


def _held(record: EngineRecord) -> PartsRead | None:
    """What an honest update of this engine leaves: the first read back of a case that plants and breaks nothing."""
    honest = {case.name for case in record.start.cases if not case.planted and case.fault is None}
    reads = [read_parts(read) for read in record.read_backs if read.case in honest]
    return reads[0] if reads else None


def _why(outcome: Outcome) -> str:
    return outcome.failure.message if outcome.failure else "no reason given"
