"""`rlaudit ablate`: run a recipe's arms, diagnose, report."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlaudit.cli.fail_on import FailOn, FailOnMismatch
from rlaudit.cli.output import HELP as OUTPUT_HELP
from rlaudit.cli.output import parse_outputs, write_file, write_outputs
from rlaudit.cli.where_cells_run import AUTO, JOBS_HELP, jobs_of
from rlaudit.engines.environments.given_interpreters import ENGINE_HELP, TRAINER_HELP, given_interpreters
from rlaudit.errors import UsageError
from rlaudit.progress import Progress
from rlaudit.say import answer

if TYPE_CHECKING:
    from rlaudit.report.report import Report

    Judged = tuple[Report, Callable[[Path], None] | None]


def ablate(
    recipe: Annotated[
        str, typer.Argument(help="A recipe by name (v0-to-v1, quick, ...) or path, or a rollout config.")
    ],
    from_: Annotated[str | None, typer.Option("--from", help="With a config: the vLLM it runs on today.")] = None,
    to: Annotated[str | None, typer.Option("--to", help="With a config: the vLLM it is to run on.")] = None,
    write_recipe: Annotated[
        Path | None, typer.Option(help="With a config: save what would be run as a recipe, and stop.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Another model: a path or a hub id.")] = None,
    prompts: Annotated[str | None, typer.Option(help="Other prompts: a .txt or .jsonl file.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Completions per prompt.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The recipe's own short form.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of sampling, arm order and bootstrap.")] = None,
    run_dir: Annotated[Path | None, typer.Option(help="Where the run is kept; runs/RECIPE by default.")] = None,
    output: Annotated[list[str] | None, typer.Option(help=OUTPUT_HELP)] = None,
    fail_on: FailOnMismatch = FailOn.ERROR,
    python: Annotated[list[str] | None, typer.Option(help=ENGINE_HELP)] = None,
    trainer_python: Annotated[str | None, typer.Option(help=TRAINER_HELP)] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Use the CPU profile and engines although there is a GPU.")
    ] = False,
    jobs: Annotated[str, typer.Option(help=JOBS_HELP)] = AUTO,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be run, and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> int:
    """Run controlled arms on the local accelerator and say which layer is to blame."""
    # Statistics and tables take a second to import, which no other command should wait for.
    from rlaudit.cli.ablate_config import as_yaml, experiment_of, is_recipe
    from rlaudit.engines.hardware.accelerator import detect
    from rlaudit.engines.hardware.shares import split
    from rlaudit.laboratory.at_once import local
    from rlaudit.laboratory.course import carried_out
    from rlaudit.laboratory.estimate import estimate
    from rlaudit.laboratory.prompts import load_prompts
    from rlaudit.laboratory.study import known_studies, load_study

    outputs = parse_outputs(output or [])
    given = given_interpreters(python, trainer_python)
    at_once = jobs_of(jobs)
    accelerator, shares = split(detect(cpu), at_once or 1)
    progress = Progress(quiet)
    path = Path(recipe)
    if from_ is not None or to is not None or (path.is_file() and not is_recipe(path)):
        experiment = experiment_of(path, from_, to, model, accelerator)
        for sentence in experiment.changed:
            progress.note(f"  {sentence}")
        if write_recipe is not None:
            write_file(write_recipe, as_yaml(experiment))
            return 0
        study = known_studies()["arms"]
        loaded = study.recipe_of(dict(experiment.document), path, accelerator.kind)
    elif write_recipe is not None:
        raise UsageError(f"--write-recipe: {recipe} is a recipe already")
    else:
        study, loaded, path = load_study(recipe, accelerator.kind)
    chosen = (loaded.quickened() if quick else loaded).overridden(
        model=model, prompts=prompts, seed=seed, samples=samples
    )
    prompt_set = load_prompts(chosen.prompts, chosen.prompts_read)
    plan = study.plan(chosen, accelerator, prompt_set)
    folder = run_dir or Path("runs") / path.stem
    if dry_run:
        answer(estimate(study, plan, accelerator, prompt_set, folder, given))
        return 0
    progress.note(f"{path.stem}: {plan.title} on {accelerator.kind}, {accelerator.name}; run kept in {folder}")
    for name, reason in plan.left_out.items():
        progress.note(f"  not run     block {name}: {reason}")
    place = local(plan, accelerator, shares, at_once)
    with carried_out(study, plan, folder, accelerator, prompt_set, progress, given, place) as (finished, kept):
        document, write_tokens = JUDGES[study.name](finished, path, folder, fail_on is FailOn.ERROR)
        kept.finish(document, write_tokens)
    write_outputs(outputs, document)
    return int(document["exit_code"])


def _judged_arms(finished: Any, path: Path, folder: Path, fail_on_mismatch: bool) -> "Judged":
    """The report of finished arms, and what writes their tokens."""
    from rlaudit.diagnosis.diagnose import diagnose
    from rlaudit.diagnosis.document import document_of
    from rlaudit.diagnosis.tokens import tokens_of, write_tokens

    diagnosis = diagnose(finished)
    document = document_of(diagnosis, fail_on_mismatch)
    tokens = tokens_of(diagnosis)
    return document, None if tokens is None else partial(write_tokens, tokens)


def _judged_updates(finished: Any, path: Path, folder: Path, fail_on_mismatch: bool) -> "Judged":
    """The report of finished weight updates, and beside it recipes that show each finding again."""
    from rlaudit.laboratory.studies.updates.document import document_of

    reproduce_in = folder / "reproduce"
    return document_of(finished, path, fail_on_mismatch=fail_on_mismatch, reproduce_in=reproduce_in), None


def _judged_canary(finished: Any, path: Path, folder: Path, fail_on_mismatch: bool) -> "Judged":
    """The report of finished trainings."""
    from rlaudit.laboratory.studies.canary.document import document_of

    return document_of(finished, fail_on_mismatch=fail_on_mismatch), None


# What the figures of each study mean is said above the laboratory.
JUDGES: Mapping[str, Callable[[Any, Path, Path, bool], "Judged"]] = {
    "arms": _judged_arms,
    "updates": _judged_updates,
    "canary": _judged_canary,
}
