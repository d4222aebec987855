"""The course of a comparison: from logs, as a user names them, to all that was compared.

Behind the command `rlaudit compare` and the function `rlaudit.compare`.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.compare_tables import Comparer, todays
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.remote_log import is_file, is_remote
from rlaudit.files.unchanged import unchanged
from rlaudit.laboratory.run_folder import TOKENS, has_report, is_run
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings
from rlaudit.text.progress import Progress
from rlaudit.tokens.open_table import TokenTable, open_tables
from rlaudit.tokens.renamed_columns import AS_OURS, RenamedColumns, check_used

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_scored import Scorer
    from rlaudit.diagnosis.read_on_ray import ReadFiles

# A path, here or in a store, or a table in memory.
Log = Path | TokenTable


@dataclass(frozen=True, eq=False)
class Request:
    """What a user wants to have compared."""

    rollouts: Log
    trainer: Log | None = None
    # Rollouts of the engine that runs today, and the trainer's logprobs of them if they are in a separate table.
    before: Log | None = None
    before_trainer: Log | None = None
    # Sampling parameters by the names of a sidecar; None for what was not named.
    given: Mapping[str, Any] = field(default_factory=dict)
    # The rollout config that has the others.
    config: Path | None = None
    columns: RenamedColumns = AS_OURS
    # Of a run directory only these; all if none is named.
    arms: Sequence[str] = ()
    settings: CompareSettings = field(default_factory=CompareSettings)
    # A model that scores so many tokens.
    scorer: "Scorer | None" = None
    score_tokens: int = 0
    # The address of the Ray cluster that reads the files; None if this machine does.
    ray: str | None = None


def compare_logs(request: Request, progress: Progress) -> Comparer:
    """Compare every table of the rollouts, with today's if there is one.

    Raises UsageError for what cannot be compared, NotFinished for a log that changes meanwhile or is not whole, and for
    one in which nothing can be compared.
    """
    if request.ray is not None and (request.trainer is not None or request.before_trainer is not None):
        raise UsageError(
            "--executor ray reads each file by itself, and a trainer's table is joined to all rollouts at once",
            "join them first into one table, or leave out --executor",
        )
    if request.before_trainer is not None and request.before is None:
        raise UsageError("--before-trainer without --before", "give the engine's own table with --before")
    with unchanged() as readings:
        # A folder's files are known once it is open; it may hold others that are written on and not read.
        logs = (request.rollouts, request.trainer, request.before, request.before_trainer)
        readings.add(log for log in logs if isinstance(log, Path) and is_file(log))
        tables = _of_arms(_open(request.rollouts, request.columns), request.arms)
        trainer = _trainer(request.trainer, request.columns)
        before = () if request.before is None else _open(request.before, request.columns)
        before_trainer = _trainer(request.before_trainer, request.columns)
        all_tables = (*tables, *before, *(table for table in (trainer, before_trainer) if table is not None))
        check_used(request.columns, [table.part.renamed for table in all_tables])
        readings.add(file for table in all_tables for file in table.files)
        with _elsewhere(request.ray) as read_files:
            comparer = Comparer(
                request.given,
                request.config,
                request.settings,
                request.scorer,
                request.score_tokens,
                progress,
                read_files,
            )
            named = None if request.before is None else _path(request.before)
            for table, today in todays(tables, before, named):
                against = None if today is None else comparer.compare_today(today, before_trainer)
                comparer.compare(table, trainer, against)
    return comparer


def settings_of(
    ppo: tuple[float, float] | None, gspo: tuple[float, float] | None, margin: float | None, seed: int
) -> CompareSettings:
    """Return what a comparison is judged by. ppo, gspo: clip ranges of the objective, (low, high).

    If neither is given, both stand at their defaults, as not stated. Raises UsageError for a range or a margin that
    cannot be.
    """
    if margin is not None and not 0 < margin < math.inf:
        raise UsageError(f"--margin is {margin:g}, expected a finite number of nats of k3 above 0")
    return CompareSettings(objective=_objective(ppo, gspo), margin=margin, seed=seed)


def _objective(ppo: tuple[float, float] | None, gspo: tuple[float, float] | None) -> ObjectiveSettings:
    default = ObjectiveSettings()
    epsilons = {Clip.TOKENS: ppo, Clip.SEQUENCES: gspo}
    given = tuple(clip for clip, epsilon in epsilons.items() if epsilon is not None)
    try:
        return ObjectiveSettings(
            *(ppo or (default.ppo_epsilon_low, default.ppo_epsilon_high)),
            *(gspo or (default.gspo_epsilon_low, default.gspo_epsilon_high)),
            given or tuple(Clip),
            stated=bool(given),
        )
    except ValueError as error:
        raise UsageError(f"clip ranges: {error}") from error


def _elsewhere(ray: str | None) -> "AbstractContextManager[ReadFiles | None]":
    """Return what reads files on a cluster; None if this machine does."""
    if ray is None:
        return nullcontext()
    from rlaudit.diagnosis.read_on_ray import ray_cluster

    return ray_cluster(ray)


def _path(log: Log) -> Path:
    return log.path if isinstance(log, TokenTable) else log


def _open(log: Log, renamed: RenamedColumns, of_trainer: bool = False) -> tuple[TokenTable, ...]:
    """Open the tables of a log.

    Raises NotFinished for a run that has not ended or whose files are not as it left them.
    """
    if isinstance(log, TokenTable):
        return (log,)
    if is_remote(log):
        # A run is copied to a store only after it has ended.
        return open_tables(log, of_trainer=of_trainer, renamed=renamed)
    run = log.parent if log.name == TOKENS else log
    if is_run(run) and not has_report(run):
        raise NotFinished(
            f"the run in {run} has not finished: it has no tokens of its plan yet",
            "the ablate command that started it goes on there",
        )
    if is_run(run) and not (run / TOKENS).is_file():
        raise NotFinished(
            f"the run in {run} has no tokens: no arm of it was measured", f"rlaudit report {run} says why"
        )
    return open_tables(log, of_trainer=of_trainer, renamed=renamed)


def _trainer(log: Log | None, renamed: RenamedColumns) -> TokenTable | None:
    if log is None:
        return None
    tables = _open(log, renamed, of_trainer=True)
    if len(tables) > 1:
        raise UsageError(f"{_path(log)} holds {len(tables)} comparisons, expected the trainer's logprobs of one")
    return tables[0]


def _of_arms(tables: Sequence[TokenTable], arms: Sequence[str]) -> list[TokenTable]:
    if not arms:
        return list(tables)
    names = [table.part.name for table in tables]
    unknown = [name for name in arms if name not in names]
    if unknown:
        raise UsageError(f"no arm {unknown[0]!r}", f"there are: {', '.join(names) or 'none in this table'}")
    return [table for table in tables if table.part.name in arms]
