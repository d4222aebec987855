"""`rlaudit ablate` with a recipe about weight updates: the same options, another course."""

from dataclasses import replace
from pathlib import Path

from rlaudit.cli.output import Output, write_outputs
from rlaudit.engines.environments.given_interpreters import GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.laboratory.studies.updates.command import ablate_weight_updates, dry_run_text, overridden
from rlaudit.laboratory.studies.updates.settings import LoadedUpdateRecipe
from rlaudit.progress import Progress
from rlaudit.say import answer


def ablate_updates(
    loaded: LoadedUpdateRecipe,
    accelerator: Accelerator,
    progress: Progress,
    outputs: list[Output],
    *,
    model: str | None,
    prompts: str | None,
    seed: int | None,
    samples: int | None,
    run_dir: Path | None,
    given: GivenInterpreters,
    fail_on_mismatch: bool,
    dry_run: bool,
) -> int:
    """Run the recipe, or print what would be run, and return the exit code."""
    recipe = overridden(loaded.recipe, model=model, prompts=prompts, seed=seed, samples=samples)
    loaded = replace(loaded, recipe=recipe)
    if dry_run:
        answer(dry_run_text(loaded, accelerator, given))
        return 0
    folder = run_dir or Path("runs") / loaded.path.stem
    document = ablate_weight_updates(loaded, accelerator, folder, progress, given, fail_on_mismatch=fail_on_mismatch)
    write_outputs(outputs, document)
    return int(document["exit_code"])
