"""Find the known name that a misspelt name was meant to be."""

from collections.abc import Iterable

NEAR = 0.6  # difflib's own measure of what is alike
VERY_NEAR = 0.8  # for hundreds of names: arguments of vLLM, pages of `explain`


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", cutoff: float = NEAR) -> str:
    """Return `did you mean seed?` for the nearest of the known names, `otherwise` if none is near."""
    near = nearest(word, known, cutoff)
    return f"did you mean {near}?" if near is not None else otherwise


def nearest(word: str, known: Iterable[str], cutoff: float = NEAR) -> str | None:
    """Return the nearest of the known names, None if none is near."""
    # Costs start-up time, and is needed for mistakes alone.
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), None)
