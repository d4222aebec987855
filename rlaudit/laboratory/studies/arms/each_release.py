"""One recipe over many releases: each is the candidate of every block, in a run of its own.

What a release cannot be asked for is left out of its candidate: one without `logprobs_mode` has one mode, and is
measured as it is.
"""

from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.recipe import Block, Recipe
from rlaudit.vllm.catalogue import Catalogue


def of_release(recipe: Recipe, release: str) -> Recipe:
    """Return the recipe of one of its releases."""
    blocks = [_with_candidate(block, release) for block in recipe.blocks]
    return recipe.model_copy(update={"versions": [], "blocks": blocks})


def _with_candidate(block: Block, release: str) -> Block:
    factors, declared = known_factors(), Catalogue.at(release).engine
    levels = {
        name: level
        for name, level in block.candidate.levels.items()
        if name not in factors or factors[name].setting in declared
    }
    candidate = block.candidate.model_copy(update={"version": release, "levels": levels})
    return block.model_copy(update={"candidate": candidate})
