"""A recipe that is made of something else than a recipe: a rollout config, or a recording."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Experiment:
    """A recipe as plain data (`rlaudit-recipe/1`), and in sentences what in it is not the config's own."""

    document: Mapping[str, Any]
    changed: tuple[str, ...]
