"""What `rlaudit ablate` does with a recipe that is about weight updates."""

from pathlib import Path
from typing import Any

from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.machine import machine_of
from rlaudit.engines.models.model_files import read_model_files
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.laboratory.run_folder import opened
from rlaudit.laboratory.studies.arms.estimate import refused
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.updates.document import document_of
from rlaudit.laboratory.studies.updates.estimate import estimate
from rlaudit.laboratory.studies.updates.run import execute
from rlaudit.laboratory.studies.updates.settings import LoadedUpdateRecipe, UpdateRecipe
from rlaudit.laboratory.surroundings import prepare
from rlaudit.progress import Progress
from rlaudit.report.report import Report


def dry_run_text(loaded: LoadedUpdateRecipe, accelerator: Accelerator, given: GivenInterpreters = NONE_GIVEN) -> str:
    """What would be run, how long it takes, and what the driver refuses, as text."""
    prompts = load_prompts(loaded.recipe.prompts, loaded.recipe.prompts_used)
    cost = estimate(loaded.recipe, len(prompts.prompts), machine_of(accelerator))
    plan = make_plan(loaded.recipe.as_recipe())
    files = read_model_files(plan.recipe.model, plan.recipe.revision)
    return "\n".join([cost, *refused(plan, accelerator, files, given)])


def ablate_weight_updates(
    loaded: LoadedUpdateRecipe,
    accelerator: Accelerator,
    folder: Path,
    progress: Progress,
    given: GivenInterpreters = NONE_GIVEN,
    *,
    fail_on_mismatch: bool = True,
) -> Report:
    """Run the recipe in `folder` and return the report, which is also left there as report.json."""
    recipe = loaded.recipe
    prompts = load_prompts(recipe.prompts, recipe.prompts_used)
    progress.note(f"{loaded.path.stem}: weight updates on {accelerator.kind}, {accelerator.name}; run kept in {folder}")
    surroundings = prepare(make_plan(recipe.as_recipe()), folder, accelerator, prompts, progress, given)
    with opened(folder) as kept:
        run = execute(recipe, kept, surroundings, progress)
        document = document_of(run, loaded.path, fail_on_mismatch=fail_on_mismatch, reproduce_in=folder / "reproduce")
        kept.finish(document)
    return document


def overridden(
    recipe: UpdateRecipe,
    *,
    model: str | None = None,
    prompts: str | None = None,
    seed: int | None = None,
    samples: int | None = None,
) -> UpdateRecipe:
    """The recipe with what the command line says instead."""
    said = {"model": model, "prompts": prompts, "seed": seed}
    update: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if samples is not None:
        update["weight_updates"] = recipe.weight_updates.model_copy(update={"samples": samples})
    return recipe.model_copy(update=update)
