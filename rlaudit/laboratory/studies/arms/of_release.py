"""One recipe over many releases: each is the candidate of every block, in a separate run.

Levels of arguments that a release does not have are left out: one without `logprobs_mode` has one mode. Blocks of the
prefix cache have the smallest size that a release allows on a processor: short prompts would share no larger one.
"""

from packaging.version import Version

from rlaudit.engines.engine import Build
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.recipe import Block, Recipe
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.resolution.block_size import smallest_cpu_block


def of_release(recipe: Recipe, release: str, device: Build) -> Recipe:
    """Return the recipe of one of its releases."""
    blocks = [_with_candidate(block, release, device) for block in recipe.blocks]
    return recipe.model_copy(update={"versions": [], "blocks": blocks})


def _with_candidate(block: Block, release: str, device: Build) -> Block:
    factors, declared = known_factors(), Catalogue.at(release).engine
    levels = {
        name: level
        for name, level in block.candidate.levels.items()
        if name not in factors or factors[name].setting in declared
    }
    of_device = {"block_size": smallest_cpu_block(Version(release))} if device == "cpu" else {}
    candidate = block.candidate.model_copy(
        update={
            "version": release,
            "levels": levels,
            "engine_args": {**of_device, **block.engine_args, **block.candidate.engine_args},
        }
    )
    return block.model_copy(update={"candidate": candidate})
