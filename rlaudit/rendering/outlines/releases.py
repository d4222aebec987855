"""The report of an ablation over many releases: for each property, which releases have which value."""

from typing import TYPE_CHECKING

from rlaudit.rendering.outline import Lines, Outline, Section, Table, not_seen
from rlaudit.rendering.release_spans import spans_of
from rlaudit.report.parts.releases import Releases

if TYPE_CHECKING:
    from rlaudit.report.report import Report

COLUMNS = ("property", "vLLM", "value (95 % intervals over prompts)")


def outline(report: "Report") -> Outline:
    """In reading order: what moves, what does not, what could not be measured."""
    found = report["releases"]
    by_property = spans_of(found)
    moving = {title: own for title, own in by_property.items() if len(own) > 1}
    rows = [[title if own is spans[0] else "", own.said, own.value] for title, spans in moving.items() for own in spans]
    still = [f"{title}: {own[0].value}" for title, own in by_property.items() if len(own) == 1]
    missing = [f"{one.version}: {why}" for one in found.measured for why in one.why]
    measured = [one for one in found.measured if one.cells]
    return Outline(
        f"vLLM {report['versions']['from']} to {report['versions']['to']}, release by release",
        [
            Section("releases", "What moves, and at which release", [Table(COLUMNS, rows)] if rows else []),
            Section("still", "The same in all of them", [Lines(still)] if still else []),
            Section("claims", "Held against what inspect says", [Lines(_held_against_claims(found))]),
            Section("missing", "Without figures", [Lines(missing)] if missing else []),
            not_seen(report),
        ],
        lead=report.get("description", ""),
        facts=[f"{len(measured)} of {len(found.measured)} releases", *sorted({one.on for one in measured})],
    )


def _held_against_claims(found: Releases) -> list[str]:
    """Say how often a loaded engine was as its sources let expect, and each time that it was not."""
    claimed = [
        (one.version, found.properties[name], cell.word, cell.claimed)
        for one in found.measured
        for name, cell in one.cells.items()
        if cell.word is not None and cell.claimed is not None
    ]
    others = [
        f"{version}: {title} is {word}, and inspect says {claim}"
        for version, title, word, claim in claimed
        if word.lower() != claim.lower()
    ]
    return [f"{len(claimed) - len(others)} of {len(claimed)} values are as inspect says", *others]
