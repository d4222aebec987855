"""What an ablation over many releases reports: the same figures of each, and where they move."""

from collections.abc import Mapping, Sequence

from typing_extensions import TypedDict


class Cell(TypedDict):
    """What a release has of a property: a figure with its 95 % interval, or a word.

    claimed: what rlaudit knows from the release's sources, null if it claims nothing.
    """

    value: float | None
    low: float | None
    high: float | None
    word: str | None
    claimed: str | None


class MeasuredRelease(TypedDict):
    """One release. why: what it has no figures for, in the engine's or the package index's words. minutes: of its run,
    its environment included."""

    version: str
    cells: Mapping[str, Cell]
    why: Sequence[str]
    minutes: float
    date: str


class Releases(TypedDict):
    """properties: titles of the cells by name, in the order of the table. on: the machine and its builds."""

    on: str
    properties: Mapping[str, str]
    measured: Sequence[MeasuredRelease]
