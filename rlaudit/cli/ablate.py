"""`rlaudit ablate`: run a recipe's arms, diagnose, report."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.cli import where_cells_run as where
from rlaudit.cli.names import of_kind
from rlaudit.cli.options import LOCAL, FailForWhat, FailOn, FailOnMismatch, Outputs, Quiet, threshold_of
from rlaudit.cli.output import parse_outputs, write_file, write_outputs
from rlaudit.engines.environments.given_interpreters import (
    ENGINE_HELP,
    TRAINER_HELP,
    GivenInterpreters,
    given_interpreters,
)
from rlaudit.errors import UsageError
from rlaudit.severity import FailFor
from rlaudit.text.progress import Progress
from rlaudit.text.say import answer

if TYPE_CHECKING:
    from rlaudit.ablation.run import Ablation
    from rlaudit.engines.hardware.accelerator import Accelerator
    from rlaudit.laboratory.recipe import AnyRecipe
    from rlaudit.laboratory.studies.arms.further_factors import Named
    from rlaudit.laboratory.study import AnyStudy
    from rlaudit.report.report import Report


RELEASES = of_kind("versions")


class Until(StrEnum):
    """What ends a run before its last arm."""

    VERDICT = "verdict"


def _recipes_and_files(incomplete: str) -> list[str]:
    """Return recipes by name, then files and folders: a recipe, a config or a recording."""
    from rlaudit.laboratory.recipe import recipe_names

    folder = Path(incomplete).parent if "/" in incomplete else Path()
    files = sorted(f"{path}/" if path.is_dir() else str(path) for path in folder.glob("*"))
    return [name for name in (*recipe_names(), *files) if name.startswith(incomplete)]


def ablate(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe by name (v0-to-v1, quick, ...) or path, a rollout config, or a recording.",
            autocompletion=_recipes_and_files,
        ),
    ],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="VERSION", help="With a config: the vLLM that it runs on today.", autocompletion=RELEASES
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="VERSION",
            help="With a config or a recording: the vLLM to move to.",
            autocompletion=RELEASES,
        ),
    ] = None,
    write_recipe: Annotated[
        Path | None, typer.Option(metavar="PATH", help="With a config: save what would be run as a recipe, and stop.")
    ] = None,
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With a recording: replay this engine argument or variable, too. By default a replay leaves out "
            "arguments that name code or files.",
        ),
    ] = None,
    updates: Annotated[
        bool, typer.Option("--updates", help="With a recording: repeat how its weights were updated, on both releases.")
    ] = False,
    factor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=LEVEL]",
            help="Try this factor, too (rlaudit list factors); repeatable.",
            autocompletion=of_kind("factors"),
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="Another model: a path or a hub id.")] = None,
    prompts: Annotated[str | None, typer.Option(metavar="PATH", help="Other prompts: a .txt or .jsonl file.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, metavar="N", help="Completions per prompt.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The recipe's own short form.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Seed of sampling, arm order and bootstrap.")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where the run is kept; runs/RECIPE by default.")
    ] = None,
    output: Outputs = None,
    fail_on: FailOnMismatch = FailOn.ERROR,
    fail_for: FailForWhat = FailFor.STATE,
    python: Annotated[list[str] | None, typer.Option(metavar="[VERSION=]COMMAND", help=ENGINE_HELP)] = None,
    trainer_python: Annotated[str | None, typer.Option(metavar="COMMAND", help=TRAINER_HELP)] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Use the CPU profile and engines although there is a GPU.")
    ] = False,
    jobs: Annotated[str, typer.Option(metavar="N", help=where.JOBS_HELP)] = where.AUTO,
    executor: Annotated[str, typer.Option(help=where.EXECUTOR_HELP, metavar="WHERE")] = LOCAL,
    until: Annotated[
        Until | None,
        typer.Option(metavar="verdict", help="verdict: stop once no remaining arm can change the verdict of a layer."),
    ] = None,
    bisect: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Halve the releases between the recipe's two until neighbours differ in this metric, and "
            "ablate these.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be run, and stop.")] = False,
    quiet: Quiet = False,
) -> int:
    """Find the setting that causes a mismatch, by controlled runs.

    Each arm runs one engine with one set of settings, on this machine or a cluster. The report judges three layers:
    what logprobs mean, the inference path, the objective.
    """
    # Statistics and tables take a second to import, which no other command should wait for.
    from rlaudit.ablation.run import Ablation
    from rlaudit.engines.hardware.accelerator import detect
    from rlaudit.engines.hardware.shares import split
    from rlaudit.laboratory.estimate import estimate
    from rlaudit.laboratory.place import cells_at_once, local
    from rlaudit.laboratory.prompts import load_prompts
    from rlaudit.laboratory.studies.arms.further_factors import named_factors

    outputs = parse_outputs(output)
    named = named_factors(factor or ())
    given = given_interpreters(python, trainer_python)
    at_once = where.jobs_of(jobs)
    progress = Progress(quiet)
    cluster = where.on_cluster(executor, at_once, progress, cpu=cpu)
    accelerator, shares = (cluster.accelerator, ()) if cluster else split(detect(cpu), at_once or 1)
    experiment = _experiment(
        recipe, from_, to, model, write_recipe, accelerator, progress, take_over or (), updates, named
    )
    if experiment is None:
        return 0
    study, loaded, path = experiment
    if fail_for is FailFor.MOVE and study.name != "arms":
        raise UsageError(f"--fail-for move: {path.name} compares no engine of today with the next one")
    chosen = (loaded.quickened() if quick else loaded).overridden(
        model=model, prompts=prompts, seed=seed, samples=samples
    )
    prompt_set = load_prompts(chosen.prompts, chosen.prompts_read)
    plan = study.plan(chosen, accelerator, prompt_set)
    folder = run_dir or Path("runs") / path.stem
    most = cells_at_once(plan, accelerator, shares, at_once) if cluster is None else cluster.at_once
    if dry_run:
        answer(estimate(study, plan, accelerator, prompt_set, folder, given, most))
        return 0
    progress.note(f"{path.stem}: {plan.title} on {accelerator.kind}, {accelerator.name}; run kept in {folder}")
    for name, reason in plan.left_out.items():
        progress.note(f"  not run     block {name}: {reason}")
    place = local(shares, most) if cluster is None else where.at_cluster(cluster)
    ablation = Ablation(
        study,
        path,
        accelerator,
        prompt_set,
        folder,
        place,
        progress,
        threshold_of(fail_on, fail_for),
        until_verdict=until is Until.VERDICT,
    )
    return write_outputs(outputs, _report_of(ablation, chosen, given, bisect))


def _report_of(ablation: "Ablation", recipe: "AnyRecipe", given: GivenInterpreters, metric: str | None) -> "Report":
    """Carry the recipe out: as it is, or for the two releases between which `metric` moves."""
    from rlaudit.laboratory.studies.arms.recipe import Recipe

    if metric is None:
        return ablation.report(recipe, given, looked_at=True)
    from rlaudit.ablation.bisection import bisected

    if not isinstance(recipe, Recipe):
        raise UsageError("--bisect is for recipes of arms, configs and recordings")
    bisection = bisected(ablation, recipe, metric, given)
    if bisection.pair is None:
        return bisection.report()
    return ablation.report(bisection.pair, bisection.given, looked_at=True, bisection=bisection.reported)


def _experiment(
    recipe: str,
    from_: str | None,
    to: str | None,
    model: str | None,
    write_recipe: Path | None,
    accelerator: "Accelerator",
    progress: Progress,
    repeated: Sequence[str],
    updates: bool,
    named: "Named",
) -> "tuple[AnyStudy, AnyRecipe, Path] | None":
    """Return the study, its recipe and the recipe's path; None if the recipe was only to be written, and is."""
    from rlaudit.laboratory.from_file import as_yaml, experiment_of, is_recipe
    from rlaudit.laboratory.recipe import names_recipe
    from rlaudit.laboratory.studies.arms.further_factors import with_factors
    from rlaudit.laboratory.study import known_studies, load_study
    from rlaudit.recording.recording import is_recording

    path = Path(recipe)
    if (updates or repeated) and not is_recording(path):
        raise UsageError(f"--{'updates' if updates else 'take-over'} is for a recording, which {recipe} is not")
    if (from_ is not None or to is not None) and names_recipe(recipe):
        raise UsageError(
            f"--from and --to are for a config or a recording, and {recipe} is a recipe",
            "Its releases are written in it: copy it and change `version`.",
        )
    if from_ is None and to is None and not is_recording(path) and not (path.is_file() and not is_recipe(path)):
        if write_recipe is not None:
            raise UsageError(f"--write-recipe: {recipe} is a recipe already")
        study, loaded, file = load_study(recipe, accelerator.kind)
        return study, with_factors(loaded, named), file
    if updates and named:
        raise UsageError("--factor is for arms, which --updates has none of")
    experiment = experiment_of(path, from_, to, model, accelerator, repeated, updates=updates, named=named)
    for sentence in experiment.changed:
        progress.note(f"  {sentence}")
    if write_recipe is not None:
        write_file(write_recipe, as_yaml(experiment))
        return None
    study = known_studies()["updates" if updates else "arms"]
    return study, study.recipe_of(dict(experiment.document), path, accelerator.kind), path
