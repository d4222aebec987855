"""`rlaudit compare`: logged rollout logprobs against trainer logprobs."""

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
    ray_address,
    threshold_of,
)
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.cli.scoring import SCORE_TOKENS, Score, ScoreDtype, ScoreOnCpu, TrainerPython, scorer_of
from rlaudit.files.remote_log import log_path
from rlaudit.severity import FailFor, Threshold
from rlaudit.text.progress import Progress
from rlaudit.text.say import say

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_tables import Comparer
    from rlaudit.report.report import Report


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
            help="Sequence clip range of your objective (0.02 0.02 for GSPO). With only one of --ppo-epsilon and "
            "--gspo-epsilon, clipping is judged by that range alone.",
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
    """Compare logged rollout and trainer logprobs: meaning and distance."""
    # Statistics and tables take a second to import, which no other command should wait for.
    from rlaudit.diagnosis.compare_course import Request, compare_logs, settings_of
    from rlaudit.diagnosis.compare_sampling import named_sampling
    from rlaudit.tokens.parquet import KNOWN
    from rlaudit.tokens.renamed_columns import parse_columns

    outputs = parse_outputs(output)
    request = Request(
        rollouts,
        trainer,
        before,
        before_trainer,
        given=named_sampling(
            temperature, top_p, top_k, min_p, repetition_penalty, trainer_temperature, trainer_replays_filters
        ),
        config=config,
        columns=parse_columns(columns or [], KNOWN),
        arms=arm or (),
        settings=settings_of(ppo_epsilon, gspo_epsilon, margin, seed),
        scorer=None if score is None else scorer_of(score, score_dtype, trainer_python, cpu),
        score_tokens=score_tokens,
        ray=ray_address(executor),
    )
    comparer = compare_logs(request, Progress(quiet))
    document = _document(comparer, threshold_of(fail_on, fail_for), allow_partial, require is not None)
    return write_outputs(outputs, document)


def _document(comparer: "Comparer", threshold: Threshold, allow_partial: bool, requires_match: bool) -> "Report":
    """Return the report of all comparisons; print which lines could not be used."""
    for comparison in comparer.compared:
        for line in comparison.faults.lines():
            say(line)
    from rlaudit.report.of_comparison import document_of

    return document_of(comparer, threshold, allow_partial, requires_match)
