"""What an ablation over many releases reports: the same figures of each, and where they move."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a release has of a property: a figure with its 95 % interval, or a word.

    claimed: what rlaudit knows from the release's sources, null if it claims nothing. why: the reason, with the line of
    the release that decides it.
    """

    value: float | None
    low: float | None
    high: float | None
    word: str | None
    claimed: str | None
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class MeasuredRelease:
    """One release, as one machine measured it."""

    version: str
    cells: Mapping[str, Cell]
    # Why figures are missing, in the words of the engine or the package index.
    why: Sequence[str]
    # Without building the environment.
    minutes: float
    date: str
    # The machine and its builds.
    on: str
    # A digest of what the recipe requests of this release, and of its prompts.
    asked: str


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The releases of a recipe."""

    # Titles of the cells by name, in the order of the table.
    properties: Mapping[str, str]
    measured: Sequence[MeasuredRelease]
