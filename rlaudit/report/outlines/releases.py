"""The report of an ablation over many releases: for each property, which releases have which value.

Neighbours have the same value if the word is the same, or if the interval of a figure overlaps with that of the first
release of the span. A release without the property ends no span.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.report.figures import interval
from rlaudit.report.outline import Lines, Outline, Section, Table, not_seen
from rlaudit.report.parts.releases import Cell, MeasuredRelease, Releases
from rlaudit.report.report import Report

COLUMNS = ("property", "vLLM", "value (95 % intervals over prompts)")


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
        return interval(self.cell) if self.cell["word"] is None else self.cell["word"]


def spans(measured: Sequence[MeasuredRelease], name: str) -> list[Span]:
    """Return the spans of a property, oldest first; none of a property that no release has."""
    found: list[Span] = []
    for release in measured:
        cell = release["cells"].get(name)
        if cell is None:
            continue
        if found and _same(found[-1].cell, cell):
            found[-1].versions.append(release["version"])
        else:
            found.append(Span([release["version"]], cell))
    return found


def releases(report: Report, found: Releases) -> Outline:
    """In reading order: what moves, what does not, what could not be measured."""
    by_property = {title: spans(found["measured"], name) for name, title in found["properties"].items()}
    moving = {title: own for title, own in by_property.items() if len(own) > 1}
    rows = [
        [title if own is first else "", own.said, own.value]
        for title, all_of_it in moving.items()
        for first in all_of_it[:1]
        for own in all_of_it
    ]
    still = [f"{title}: {own[0].value}" for title, own in by_property.items() if len(own) == 1]
    missing = [f"{one['version']}: {why}" for one in found["measured"] for why in one["why"]]
    measured = [one for one in found["measured"] if one["cells"]]
    return Outline(
        f"vLLM {report['versions']['from']} to {report['versions']['to']}, release by release",
        [
            Section("releases", "What moves, and at which release", [Table(COLUMNS, rows)] if rows else []),
            Section("still", "The same in all of them", [Lines(still)] if still else []),
            Section("missing", "Without figures", [Lines(missing)] if missing else []),
            not_seen(report),
        ],
        lead=report.get("description", ""),
        facts=[f"{len(measured)} of {len(found['measured'])} releases", found["on"]],
    )


def _same(first: Cell, other: Cell) -> bool:
    if first["word"] is not None or other["word"] is not None:
        return first["word"] == other["word"]
    if first["low"] is None or first["high"] is None or other["low"] is None or other["high"] is None:
        return first["value"] == other["value"]
    return first["low"] <= other["high"] and other["low"] <= first["high"]
