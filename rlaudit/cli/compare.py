"""`rlaudit compare`: logged rollout logprobs against trainer logprobs."""

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.cli.options import (
    LOCAL,
    FailForWhat,
    FailOn,
    FailOnMismatch,
    MinP,
    Outputs,
    Quiet,
    RepetitionPenalty,
    Require,
    RolloutConfig,
    Temperature,
    TopK,
    TopP,
    TrainerReplaysFilters,
    TrainerTemperature,
    named_sampling,
    ray_address,
    threshold_of,
)
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.cli.scoring import SCORE_TOKENS, Score, ScoreDtype, ScoreOnCpu, TrainerPython, scorer_of
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.remote_log import is_file, is_remote, log_path
from rlaudit.files.unchanged import unchanged
from rlaudit.severity import FailFor, Threshold
from rlaudit.text.progress import Progress
from rlaudit.text.say import say

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_tables import Comparer
    from rlaudit.report.report import Report
    from rlaudit.statistics.measurement.metric import ObjectiveSettings
    from rlaudit.tokens.open_table import TokenTable
    from rlaudit.tokens.renamed_columns import RenamedColumns


EXECUTOR_HELP = "Who reads the files: local, or ray[:ADDRESS], a cluster whose nodes all see them."


def compare(
    rollouts: Annotated[
        Path,
        typer.Argument(
            parser=log_path,
            metavar="ROLLOUTS",
            help="A recording, a token table, a run directory, or a folder of rollout dumps; "
            "here, or s3://, gs://, hf://, https://.",
        ),
    ],
    trainer: Annotated[
        Path | None,
        typer.Argument(
            parser=log_path,
            metavar="TRAINER",
            help="The trainer's logprobs of the same tokens (trainer_logprob), in a separate table.",
        ),
    ] = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    min_p: MinP = None,
    repetition_penalty: RepetitionPenalty = None,
    trainer_temperature: TrainerTemperature = None,
    trainer_replays_filters: TrainerReplaysFilters = False,
    config: RolloutConfig = None,
    before: Annotated[
        Path | None,
        typer.Option(
            parser=log_path,
            metavar="ROLLOUTS",
            help="Rollouts of today's engine: is the new one farther from the trainer?",
        ),
    ] = None,
    before_trainer: Annotated[
        Path | None,
        typer.Option(
            parser=log_path,
            metavar="TRAINER",
            help="The trainer's logprobs for --before, if they are in a separate table.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="THEIRS=OURS",
            help="What the tables call one of our columns, as logps=rollout_logprob; repeatable.",
        ),
    ] = None,
    executor: Annotated[str, typer.Option(help=EXECUTOR_HELP, metavar="WHERE")] = LOCAL,
    arm: Annotated[
        list[str] | None, typer.Option(metavar="ARM", help="Of a run directory: only these arms; repeatable.")
    ] = None,
    score: Score = None,
    score_tokens: Annotated[
        int, typer.Option(min=100, metavar="N", help="How many tokens are scored, in whole sequences.")
    ] = SCORE_TOKENS,
    score_dtype: ScoreDtype = "bfloat16",
    trainer_python: TrainerPython = None,
    cpu: ScoreOnCpu = False,
    ppo_epsilon: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Token clip range of your objective (0.2 0.2 for PPO)."),
    ] = None,
    gspo_epsilon: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="Sequence clip range of your objective (0.02 0.02 for GSPO). If only one of the two is given, only "
            "that one is used.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="NATS",
            help="The largest k3 (nats) that counts as equal. By default that of --before; "
            "without that, the k3 at which more than 1 % of tokens or sequences leave the clip ranges.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the bootstrap.")] = 0,
    allow_partial: Annotated[
        bool,
        typer.Option("--allow-partial", help="Skip lines and sequences that cannot be used instead of ending with 3."),
    ] = False,
    output: Outputs = None,
    fail_on: FailOnMismatch = FailOn.ERROR,
    fail_for: FailForWhat = FailFor.STATE,
    require: Require = None,
    quiet: Quiet = False,
) -> int:
    """Say what logged logprobs mean, and how far apart they are."""
    # Statistics and tables take a second to import, which no other command should wait for.
    from rlaudit.diagnosis.compare_settings import CompareSettings
    from rlaudit.diagnosis.compare_tables import Comparer, todays
    from rlaudit.diagnosis.read_on_ray import ray_cluster
    from rlaudit.tokens.parquet import KNOWN
    from rlaudit.tokens.renamed_columns import check_used, parse_columns

    outputs = parse_outputs(output)
    progress = Progress(quiet)
    settings = CompareSettings(objective=_objective(ppo_epsilon, gspo_epsilon), margin=_margin(margin), seed=seed)
    sampling = named_sampling(
        temperature, top_p, top_k, min_p, repetition_penalty, trainer_temperature, trainer_replays_filters
    )
    renamed = parse_columns(columns or [], KNOWN)
    address = ray_address(executor)
    if address is not None and (trainer is not None or before_trainer is not None):
        raise UsageError(
            "--executor ray reads each file by itself, and a trainer's table is joined to all rollouts at once",
            "join them first into one table, or leave out --executor",
        )
    if before_trainer is not None and before is None:
        raise UsageError("--before-trainer without --before", "give the engine's own table with --before")
    scorer = None if score is None else scorer_of(score, score_dtype, trainer_python, cpu)
    with unchanged() as readings:
        # A folder's files are known once it is open; it may hold others that are written on and not read.
        named = (rollouts, trainer, before, before_trainer)
        readings.add(path for path in named if path is not None and is_file(path))
        tables = _of_arms(_open(rollouts, renamed=renamed), arm or [])
        trainer_table = _trainer(trainer, renamed)
        before_tables = () if before is None else _open(before, renamed=renamed)
        before_trainer_table = _trainer(before_trainer, renamed)
        trainer_tables = [table for table in (trainer_table, before_trainer_table) if table is not None]
        all_tables = (*tables, *before_tables, *trainer_tables)
        check_used(renamed, [table.part.renamed for table in all_tables])
        readings.add(file for table in all_tables for file in table.files)
        with nullcontext() if address is None else ray_cluster(address) as read_files:
            comparer = Comparer(sampling, config, settings, scorer, score_tokens, progress, read_files)
            for table, today in todays(tables, before_tables, before):
                against = None if today is None else comparer.compare_today(today, before_trainer_table)
                comparer.compare(table, trainer_table, against)
    document = _document(comparer, threshold_of(fail_on, fail_for), allow_partial, require is not None)
    return write_outputs(outputs, document)


def _document(comparer: "Comparer", threshold: Threshold, allow_partial: bool, requires_match: bool) -> "Report":
    """Return the report of all comparisons; print which lines could not be used."""
    for comparison in comparer.compared:
        for line in comparison.faults.lines():
            say(line)
    from rlaudit.report.of_comparison import document_of

    return document_of(comparer, threshold, allow_partial, requires_match)


def _open(path: Path, of_trainer: bool = False, renamed: "RenamedColumns | None" = None) -> "tuple[TokenTable, ...]":
    """Open the tables of a path.

    Raises NotFinished for a run that has not ended or whose files are not as it left them.
    """
    from rlaudit.laboratory.run_folder import TOKENS, has_report, is_run
    from rlaudit.tokens.open_table import open_tables
    from rlaudit.tokens.renamed_columns import AS_OURS

    if is_remote(path):
        # A run is copied to a store only after it has ended.
        return open_tables(path, of_trainer=of_trainer, renamed=renamed or AS_OURS)
    run = path.parent if path.name == TOKENS else path
    if is_run(run) and not has_report(run):
        raise NotFinished(
            f"the run in {run} has not finished: it has no tokens of its plan yet",
            "the ablate command that started it goes on there",
        )
    if is_run(run) and not (run / TOKENS).is_file():
        raise NotFinished(
            f"the run in {run} has no tokens: no arm of it was measured", f"rlaudit report {run} says why"
        )
    return open_tables(path, of_trainer=of_trainer, renamed=renamed or AS_OURS)


def _trainer(path: Path | None, renamed: "RenamedColumns") -> "TokenTable | None":
    if path is None:
        return None
    tables = _open(path, of_trainer=True, renamed=renamed)
    if len(tables) > 1:
        raise UsageError(f"{path} holds {len(tables)} comparisons, expected the trainer's logprobs of one")
    return tables[0]


def _margin(margin: float | None) -> float | None:
    if margin is not None and not 0 < margin < math.inf:
        raise UsageError(f"--margin is {margin:g}, expected a finite number of nats of k3 above 0")
    return margin


def _objective(ppo: tuple[float, float] | None, gspo: tuple[float, float] | None) -> "ObjectiveSettings":
    """Return the given clip ranges of the objective, or both at their defaults, as not stated, if none is given."""
    from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings

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


def _of_arms(tables: "tuple[TokenTable, ...]", arms: list[str]) -> "list[TokenTable]":
    if not arms:
        return list(tables)
    names = [table.part.name for table in tables]
    unknown = [name for name in arms if name not in names]
    if unknown:
        raise UsageError(f"no arm {unknown[0]!r}", f"there are: {', '.join(names) or 'none in this table'}")
    return [table for table in tables if table.part.name in arms]
