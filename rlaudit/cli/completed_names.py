"""What a shell completes where a name is wanted: what is known is looked up only when a shell asks."""

import pkgutil
from collections.abc import Callable, Iterable
from pathlib import Path

Completed = Callable[[str], list[str]]


def one_of(names: Callable[[], Iterable[str]]) -> Completed:
    """Return a function from the beginning of a word to the names that begin so."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def pages() -> list[str]:
    """Return all that `rlaudit explain` has a page for."""
    from rlaudit.cli.pages import all_names

    return sorted([*all_names(), *releases()])


def releases() -> list[str]:
    """Return the catalogued releases of vLLM, the newest first."""
    from rlaudit.vllm.catalogue import known_versions

    return [str(version) for version in reversed(known_versions())]


def rules() -> list[str]:
    """Return the names of rules."""
    from rlaudit.inspection.selection import rule_names

    return list(rule_names())


def factors() -> list[str]:
    """Return the names of factors."""
    from rlaudit.laboratory.studies.arms.plan import known_factors

    return list(known_factors())


def formats() -> list[str]:
    """Return the formats of reports."""
    from rlaudit.rendering import formats as known

    return sorted(module.name for module in pkgutil.iter_modules(known.__path__))


def recipes_and_files(incomplete: str) -> list[str]:
    """Return recipes by name, then files and folders: a recipe, a config or a recording."""
    from rlaudit.laboratory.recipe import recipe_names

    folder = Path(incomplete).parent if "/" in incomplete else Path()
    files = sorted(f"{path}/" if path.is_dir() else str(path) for path in folder.glob("*"))
    return [name for name in (*recipe_names(), *files) if name.startswith(incomplete)]
