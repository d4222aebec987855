"""`rlaudit compare`: logged rollout logprobs against trainer logprobs."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.cli.output import HELP as OUTPUT_HELP
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.errors import UsageError
from rlaudit.progress import Progress

if TYPE_CHECKING:
    from rlaudit.cli.compare_sampling import Told
    from rlaudit.diagnosis.compare_document import Compared
    from rlaudit.diagnosis.compare_scored import Scorer
    from rlaudit.diagnosis.comparison import CompareSettings
    from rlaudit.mismatch.metric import ObjectiveSettings
    from rlaudit.token_figures.logged_figures import LoggedFigures
    from rlaudit.token_table.fault import Faults
    from rlaudit.token_table.open_table import TokenTable
    from rlaudit.token_table.prompt_numbers import PromptNumbers
    from rlaudit.token_table.token_batch import TokenBatch


class FailOn(StrEnum):
    """What makes the exit code 1."""

    ERROR = "error"
    NEVER = "never"


def compare(
    rollouts: Annotated[Path, typer.Argument(help="A token table, a run directory, or a folder of rollout dumps.")],
    trainer: Annotated[
        Path | None,
        typer.Argument(help="The trainer's logprobs of the same tokens, where they are a table of their own."),
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature of the rollouts.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Nucleus mass of the rollouts.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Most probable tokens kept; 0 or -1 is off.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Share of the top probability a token must have.")] = None,
    repetition_penalty: Annotated[float | None, typer.Option(help="Of the rollouts; 1 is off.")] = None,
    trainer_temperature: Annotated[
        float | None, typer.Option(help="What the trainer divides its logits by; the sampling temperature by default.")
    ] = None,
    trainer_replays_filters: Annotated[
        bool, typer.Option("--trainer-replays-filters", help="The trainer applies the sampler's filters as well.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="The rollout config that says all of this.")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Of a run directory: only these arms; repeatable.")] = None,
    score: Annotated[
        str | None, typer.Option(help="A model (path or hub id) that scores a sample as the trainer would.")
    ] = None,
    score_tokens: Annotated[
        int, typer.Option(min=100, help="How many tokens are scored, in whole sequences.")
    ] = 20_000,
    score_dtype: Annotated[str, typer.Option(help="The trainer's dtype: bfloat16, float32 or float16.")] = "bfloat16",
    trainer_python: Annotated[Path | None, typer.Option(help="An interpreter with torch and transformers.")] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Score on the CPU although there is a GPU.")] = False,
    ppo_epsilon: Annotated[
        tuple[float, float], typer.Option(metavar="LOW HIGH", help="Token clip range of your objective.")
    ] = (0.2, 0.2),
    gspo_epsilon: Annotated[
        tuple[float, float], typer.Option(metavar="LOW HIGH", help="Sequence clip range of your objective.")
    ] = (0.02, 0.02),
    margin: Annotated[float, typer.Option(help="k3 in nats below which both sides count as the same.")] = 1e-3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    allow_partial: Annotated[
        bool,
        typer.Option("--allow-partial", help="Lines and sequences that cannot be used do not end it with 3."),
    ] = False,
    output: Annotated[list[str] | None, typer.Option(help=OUTPUT_HELP)] = None,
    fail_on: Annotated[FailOn, typer.Option(help="What exits with 1: a mismatch (error), or nothing.")] = FailOn.ERROR,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> int:
    """Find out whether logged rollout logprobs mean what the trainer assumes, and how far they are apart."""
    # Statistics and tables take a second to import, which no other command should wait for.
    from rlaudit.cli.compare_sampling import told
    from rlaudit.diagnosis.compare_document import document_of
    from rlaudit.diagnosis.comparison import CompareSettings
    from rlaudit.token_figures.logged_figures import LoggedFigures
    from rlaudit.token_table.open_table import open_tables

    outputs = parse_outputs(output or [])
    progress = Progress(quiet)
    settings = CompareSettings(objective=_objective(ppo_epsilon, gspo_epsilon), margin=margin, seed=seed)
    given = {
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "trainer_temperature": trainer_temperature,
        "trainer_replays_filters": trainer_replays_filters or None,
    }
    tables = _chosen(open_tables(rollouts), arm or [])
    trainers = open_tables(trainer) if trainer is not None else ()
    if len(trainers) > 1:
        raise UsageError(f"{trainer} holds {len(trainers)} comparisons, expected the trainer's logprobs of one")
    scorer = None if score is None else _scorer(score, score_dtype, trainer_python, cpu)
    compared, drawn, assumed = [], list[LoggedFigures](), list[str]()
    for table in tables:
        sampling = told(given, config, table.path, table.part)
        assumed += sampling.assumed
        _say(progress, table, sampling)
        own = replace(settings, trainer_excludes=sampling.replays)
        figures = LoggedFigures(own.trainer_excludes)
        compared.append(
            _compared(table, trainers[0] if trainers else None, sampling, own, scorer, score_tokens, progress, figures)
        )
        drawn.append(figures)
    document = document_of(compared, list(dict.fromkeys(assumed)), fail_on is FailOn.ERROR, allow_partial)
    names = [one["name"] for one in document["comparisons"]]
    document["token_figures"] = [one.as_dict(name) for one, name in zip(drawn, names, strict=True)]
    for one in compared:
        for line in one.faults.lines():
            print(f"rlaudit: {line}", file=sys.stderr)
    write_outputs(outputs, document)
    return int(document["exit_code"])


def _compared(
    table: "TokenTable",
    trainer: "TokenTable | None",
    sampling: "Told",
    settings: "CompareSettings",
    scorer: "Scorer | None",
    score_tokens: int,
    progress: Progress,
    figures: "LoggedFigures",
) -> "Compared":
    from rlaudit.diagnosis.compare import compare as compare_tokens
    from rlaudit.diagnosis.compare_document import Compared
    from rlaudit.diagnosis.compare_scored import score
    from rlaudit.token_table.fault import Faults
    from rlaudit.token_table.prompt_numbers import PromptNumbers

    faults, numbers = Faults(), PromptNumbers()
    notes = [table.export.note] if table.export.note else []
    sample = None if trainer is not None else table.sample(settings.evidence_tokens, numbers)
    batches: Iterator[TokenBatch] = _batches(table, trainer, faults, numbers, sample is not None)
    scored = None
    if scorer is not None:
        picked = _picked(table, score_tokens, numbers)
        scored = score(picked, sampling.sampling, sampling.trainer, scorer, progress)
        notes.append(f"{scored[0].tokens} tokens in {scored[0].sequences} sequences were scored with {scorer.model}")
        if picked.prompt_token_ids_S is None:
            notes.append(
                "prompts were made into tokens here, texts as they are and messages by the model's template: if the "
                "rollouts began with other tokens, every figure shows that"
            )
        if trainer is None and not picked.comparable_T.any():
            notes.append("the table has no trainer logprobs: figures are of the tokens that were scored, no others")
            batches = iter([scored[0]])
    # Pictures are drawn of the sample, where there is one: drawing all would take longer than comparing all.
    if sample is None or scored is not None:
        batches = figures.watching(batches)
    else:
        sample = figures.watching(sample)
    comparison = compare_tokens(
        batches,
        sampling.sampling,
        sampling.trainer,
        settings,
        name=table.part.name,
        path=table.path,
        faults=faults,
        sample=sample,
        scored=scored,
    )
    notes += [numbers.note()] if numbers.note() else []
    return Compared(
        replace(comparison, notes=tuple(notes)),
        path=str(table.path),
        export=table.export.name,
        files=len(table.files),
        trainer_path=None if trainer is None else str(trainer.path),
        faults=faults,
    )


def _batches(
    table: "TokenTable", trainer: "TokenTable | None", faults: "Faults", numbers: "PromptNumbers", thin: bool
) -> Iterator["TokenBatch"]:
    from rlaudit.token_table.join_trainer import joined
    from rlaudit.token_table.parquet import KNOWN, MEASURED

    columns = MEASURED if thin else KNOWN
    if trainer is None:
        return table.batches(faults, numbers, columns)
    return joined(
        table.batches(faults, numbers, columns), trainer.batches(faults, numbers, KNOWN), trainer.path, faults
    )


def _picked(table: "TokenTable", tokens: int, numbers: "PromptNumbers") -> "TokenBatch":
    """Sequences to score: spread over the table, with every column."""
    from rlaudit.errors import NotFinished
    from rlaudit.token_table.fault import Faults
    from rlaudit.token_table.parquet import KNOWN
    from rlaudit.token_table.prompt_tokens import with_prompt_tokens
    from rlaudit.token_table.sequence_sample import SequenceSample
    from rlaudit.token_table.sound import sound

    silent = Faults()
    sampled = SequenceSample(tokens // 2)
    for batch in table.sample(tokens, numbers) or table.batches(silent, numbers, KNOWN):
        usable = sound(batch, table.path, silent)
        if usable.sequences:
            sampled.add(usable)
    picked = sampled.batch()
    if picked is None:
        raise NotFinished(f"{table.path} has no sequence to score")
    return with_prompt_tokens(picked, table.path, silent)


def _scorer(model: str, dtype: str, python: Path | None, cpu: bool) -> "Scorer":
    from platformdirs import user_cache_path

    from rlaudit.diagnosis.compare_scored import Scorer
    from rlaudit.engines.accelerator import detect
    from rlaudit.experiment.treatment import TrainerSettings

    if dtype not in {"bfloat16", "float32", "float16"}:
        raise UsageError(f"--score-dtype is {dtype}, expected bfloat16, float32 or float16")
    accelerator = detect({"CUDA_VISIBLE_DEVICES": ""} if cpu else None)
    return Scorer(
        model, TrainerSettings(dtype=dtype), accelerator, user_cache_path("rlaudit") / "scores", python=python
    )


def _objective(ppo: tuple[float, float], gspo: tuple[float, float]) -> "ObjectiveSettings":
    from rlaudit.mismatch.metric import ObjectiveSettings

    try:
        return ObjectiveSettings(*ppo, *gspo)
    except ValueError as error:
        raise UsageError(f"clip ranges: {error}") from error


def _chosen(tables: "tuple[TokenTable, ...]", arms: list[str]) -> "list[TokenTable]":
    if not arms:
        return list(tables)
    names = [table.part.name for table in tables]
    unknown = [name for name in arms if name not in names]
    if unknown:
        raise UsageError(f"no arm {unknown[0]!r}", f"there are: {', '.join(names) or 'none in this table'}")
    return [table for table in tables if table.part.name in arms]


def _say(progress: Progress, table: "TokenTable", sampling: "Told") -> None:
    name = f"{table.part.name}: " if table.part.name else ""
    progress.note(
        f"{name}{table.export.title}, {len(table.files)} file{'s' * (len(table.files) != 1)}; sampled at "
        f"{sampling.sampling.name}, trainer at {sampling.trainer.name} (told by {sampling.source})"
    )
