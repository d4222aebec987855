"""Spans: neighbouring releases with the same value of a property.

The value is the same if the word is, or if the interval of a figure overlaps with that of the first release of the
span. A release without the property ends no span.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.report.figures import interval
from rlaudit.report.parts.releases import Cell, MeasuredRelease, Releases


@dataclass
class ReleaseSpan:
    """Neighbouring releases with the same value of a property."""

    versions: list[str]
    cell: Cell  # of the first release

    @property
    def releases(self) -> str:
        """Return the first release and the last."""
        return self.versions[0] if len(self.versions) == 1 else f"{self.versions[0]} to {self.versions[-1]}"

    @property
    def value(self) -> str:
        """Return the word, or the figure with its interval."""
        return interval(self.cell) if self.cell.word is None else self.cell.word


def spans_of_property(measured: Sequence[MeasuredRelease], name: str) -> list[ReleaseSpan]:
    """Return the spans of a property, oldest first."""
    spans: list[ReleaseSpan] = []
    for release in measured:
        cell = release.cells.get(name)
        if cell is None:
            continue
        if spans and _same(spans[-1].cell, cell):
            spans[-1].versions.append(release.version)
        else:
            spans.append(ReleaseSpan([release.version], cell))
    return spans


def spans_of(releases: Releases) -> dict[str, list[ReleaseSpan]]:
    """Return the spans of each property, by its title."""
    return {title: spans_of_property(releases.measured, name) for name, title in releases.properties.items()}


def _same(first: Cell, second: Cell) -> bool:
    if first.word is not None or second.word is not None:
        return first.word == second.word
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return first.value == second.value
    return first.low <= second.high and second.low <= first.high
