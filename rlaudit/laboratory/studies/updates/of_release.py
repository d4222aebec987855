"""One recipe of weight updates over many releases: each release takes the place of every engine of the recipe.

A release that cannot load a folder while it runs is updated by `model.load_weights`. What a release has not, such as a
way to pause, is reported as refused, in the engine's words.
"""

from packaging.version import Version

from rlaudit.engines.engine import Build
from rlaudit.laboratory.studies.updates.recipe import EngineToUpdate, UpdateRecipe
from rlaudit.vllm.milestones import RELOADS_A_FOLDER


def of_release(recipe: UpdateRecipe, release: str, device: Build) -> UpdateRecipe:
    """Return the recipe of one of its releases."""
    engines = [_of_release(engine, release) for engine in recipe.weight_updates.engines]
    updates = recipe.weight_updates.model_copy(update={"engines": engines})
    return recipe.model_copy(update={"versions": [], "weight_updates": updates})


def _of_release(engine: EngineToUpdate, release: str) -> EngineToUpdate:
    without_reload = engine.path is None and Version(release) < RELOADS_A_FOLDER
    path = "load_weights" if without_reload else engine.path
    return engine.model_copy(update={"version": release, "path": path})
