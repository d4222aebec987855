"""The recipe of one release, of a recipe that is measured on many: what each release is given.

The release is the candidate of every block, without the reference, or takes the place of every engine that is updated.
Levels of arguments that a release does not have are left out: one without `logprobs_mode` has one mode. Blocks of the
prefix cache have the smallest size that a release allows on a processor: short prompts would share no larger one. A
release that cannot load a folder while it runs is updated by `model.load_weights`; what else it has not, such as a way
to pause, is reported as refused, in the engine's words.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from packaging.version import InvalidVersion, Version

from rlaudit.engines.engine import Build
from rlaudit.errors import UsageError
from rlaudit.laboratory.recipe import AnyRecipe, read_recipe, with_profile
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.recipe import Block, Recipe
from rlaudit.laboratory.studies.updates.recipe import EngineToUpdate, UpdateRecipe
from rlaudit.laboratory.study import AnyStudy, known_studies
from rlaudit.vllm.builds import released_for
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.resolution.block_size import smallest_cpu_block

HERE = Path(__file__).parent
# From it on reload_weights takes a folder (vllm/v1/worker/gpu_model_runner.py).
RELOADS_A_FOLDER = Version("0.16.0")
# The key of a recipe here that names its releases; for a processor it may stand under `cpu`.
VERSIONS = "versions"


def recipes_by_release(
    name_or_path: str, versions: str | None, kind: Build, **options: Any
) -> tuple[AnyStudy, Path, dict[str, AnyRecipe]]:
    """Return the study, the recipe's file, and its recipe of each release, oldest first.

    versions: in place of those that the recipe names. options: as of `AnyRecipe.overridden`. Raises UsageError if no
    release is named or has a build for this machine, and for a recipe of trainings, whose arms are compared in one run.
    """
    ours = HERE / "recipes" / f"{name_or_path}.yaml"
    document, path = read_recipe(str(ours) if ours.is_file() else name_or_path)
    document = with_profile(document, kind)
    written = document.pop(VERSIONS, "")
    releases = published(versions or written, kind)
    studies = known_studies()
    study = next((study for study in studies.values() if study.key in document), studies["arms"])
    if study.name not in RECIPE_OF:
        raise UsageError(f"{path.stem} is about trainings, and one run compares those of all its arms")
    recipe_of = RECIPE_OF[study.name]
    return study, path, {one: recipe_of(study, document, path, one, kind).overridden(**options) for one in releases}


def published(versions: Any, kind: Build) -> list[str]:
    """Return the releases of a list, or of `OLDEST..NEWEST` those that are published for this machine, oldest first.

    Raises UsageError if there are none.
    """
    try:
        if isinstance(versions, str) and ".." in versions:
            oldest, newest = (Version(end) for end in versions.split("..", 1))
            releases = [release for release in released_for(kind) if oldest <= release <= newest]
        else:
            names = versions.split(",") if isinstance(versions, str) else versions
            releases = sorted(Version(str(name)) for name in names if name)
    except InvalidVersion as error:
        raise UsageError(f"{VERSIONS}: {versions}: {error}", "Write OLDEST..NEWEST, such as 0.18.1..0.32.0.") from None
    if not releases:
        raise UsageError(f"{VERSIONS}: {versions!r} names no release with a {kind} build", "Give --versions.")
    return [str(release) for release in releases]


def arms_of_release(study: AnyStudy, document: Mapping[str, Any], path: Path, release: str, kind: Build) -> AnyRecipe:
    """Return the recipe of arms of one release."""
    blocks = [
        {**block, "reference": None, "candidate": {**block.get("candidate", {}), "version": release}}
        for block in document["blocks"]
    ]
    recipe = cast(Recipe, study.recipe_of({**document, "blocks": blocks}, path, kind))
    return recipe.model_copy(update={"blocks": [_fitting(block, release, kind) for block in recipe.blocks]})


def _fitting(block: Block, release: str, kind: Build) -> Block:
    factors, declared = known_factors(), Catalogue.at(release).engine
    levels = {
        name: level
        for name, level in block.candidate.levels.items()
        if name not in factors or factors[name].setting in declared
    }
    of_device = {"block_size": smallest_cpu_block(Version(release))} if kind == "cpu" else {}
    engine_args = {**of_device, **block.engine_args, **block.candidate.engine_args}
    candidate = block.candidate.model_copy(update={"levels": levels, "engine_args": engine_args})
    return block.model_copy(update={"candidate": candidate})


def updates_of_release(
    study: AnyStudy, document: Mapping[str, Any], path: Path, release: str, kind: Build
) -> AnyRecipe:
    """Return the recipe of weight updates of one release."""
    updates = document["weight_updates"]
    engines = [{**engine, "version": release} for engine in updates["engines"]]
    changed = {**document, "weight_updates": {**updates, "engines": engines}}
    recipe = cast(UpdateRecipe, study.recipe_of(changed, path, kind))
    loading = [_loading(engine, release) for engine in recipe.weight_updates.engines]
    return recipe.model_copy(update={"weight_updates": recipe.weight_updates.model_copy(update={"engines": loading})})


def _loading(engine: EngineToUpdate, release: str) -> EngineToUpdate:
    without_reload = engine.path is None and Version(release) < RELOADS_A_FOLDER
    return engine.model_copy(update={"path": "load_weights"}) if without_reload else engine


RECIPE_OF: Mapping[str, Callable[[AnyStudy, Mapping[str, Any], Path, str, Build], AnyRecipe]] = {
    "arms": arms_of_release,
    "updates": updates_of_release,
}
