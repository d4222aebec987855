"""`--factor NAME[=LEVEL]`: factors that a command line adds to an experiment."""

from collections.abc import Mapping, Sequence

from rlaudit.errors import UsageError
from rlaudit.laboratory.recipe import AnyRecipe
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.recipe import Recipe
from rlaudit.text.did_you_mean import did_you_mean

# The levels that are named of each factor, often none.
Named = Mapping[str, Sequence[str]]


def named_factors(texts: Sequence[str]) -> Named:
    """Return the factors of NAME and NAME=LEVEL. Raises UsageError for one that does not exist."""
    named: dict[str, list[str]] = {}
    for text in texts:
        name, _, level = text.partition("=")
        factor = known_factors().get(name)
        if factor is None:
            hint = did_you_mean(name, known_factors(), "see: rlaudit list factors")
            raise UsageError(f"--factor {text}: there is no such factor", hint)
        if level and factor.levels and level not in factor.levels:
            raise UsageError(f"--factor {text}: {name} has no such level", f"It has {', '.join(factor.levels)}.")
        if not level and not factor.levels:
            raise UsageError(f"--factor {name} needs a level", f"write --factor {name}=LEVEL: rlaudit explain {name}")
        named.setdefault(name, []).extend([level] if level else [])
    return named


def with_factors(recipe: AnyRecipe, named: Named) -> AnyRecipe:
    """Return the recipe with these factors in every block, at all their levels if none is named.

    Raises UsageError for a recipe that has no arms.
    """
    if not named:
        return recipe
    if not isinstance(recipe, Recipe):
        raise UsageError("--factor is for recipes of arms, configs and recordings")
    more = {name: tuple(levels or known_factors()[name].levels) for name, levels in named.items()}
    blocks = [
        block.model_copy(
            update={
                "factors": block.factors
                | {name: list(dict.fromkeys([*block.factors.get(name, ()), *levels])) for name, levels in more.items()}
            }
        )
        for block in recipe.blocks
    ]
    return recipe.model_copy(update={"blocks": blocks})
