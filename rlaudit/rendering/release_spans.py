"""Releases with one value of a property.

Neighbours have the same value if the word is the same, or if the interval of a figure overlaps with that of the first
release of the span. A release without the property ends no span.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.report.figures import interval
from rlaudit.report.parts.releases import Cell, MeasuredRelease, Releases


@dataclass
class Span:
    """Releases with one value of a property: the first one's."""

    versions: list[str]
    cell: Cell

    @property
    def said(self) -> str:
        """The first release and the last."""
        return self.versions[0] if len(self.versions) == 1 else f"{self.versions[0]} to {self.versions[-1]}"

    @property
    def value(self) -> str:
        """The word, or the figure with its interval."""
        return interval(self.cell) if self.cell.word is None else self.cell.word


def spans_of_property(measured: Sequence[MeasuredRelease], name: str) -> list[Span]:
    """Return the spans of a property, oldest first; none of a property that no release has."""
    found: list[Span] = []
    for release in measured:
        cell = release.cells.get(name)
        if cell is None:
            continue
        if found and _same(found[-1].cell, cell):
            found[-1].versions.append(release.version)
        else:
            found.append(Span([release.version], cell))
    return found


def spans_of(found: Releases) -> dict[str, list[Span]]:
    """Return the spans of each property, by its title."""
    return {title: spans_of_property(found.measured, name) for name, title in found.properties.items()}


def _same(first: Cell, other: Cell) -> bool:
    if first.word is not None or other.word is not None:
        return first.word == other.word
    if first.low is None or first.high is None or other.low is None or other.high is None:
        return first.value == other.value
    return first.low <= other.high and other.low <= first.high
