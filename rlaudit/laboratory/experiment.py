"""An experiment: a recipe generated from a rollout config or a recording."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Experiment:
    """A recipe as plain data (`rlaudit-recipe/1`), and sentences about what in it does not come from the config."""

    document: Mapping[str, Any]
    changed: tuple[str, ...]
