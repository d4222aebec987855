"""The report of an ablation over many releases: for each property, which releases have which value."""

from typing import TYPE_CHECKING

from rlaudit.report.parts.releases import Releases
from rlaudit.report.rendering.outline import Lines, Outline, Section, Table, not_seen
from rlaudit.report.rendering.release_spans import spans_of

if TYPE_CHECKING:
    from rlaudit.report.report import Report

COLUMNS = ("property", "vLLM", "value (95 % intervals over prompts)")


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order: what moves, what does not, what could not be measured."""
    releases = report["releases"]
    by_property = spans_of(releases)
    moving = {title: spans for title, spans in by_property.items() if len(spans) > 1}
    rows = [
        ["" if index else title, span.releases, span.value]
        for title, spans in moving.items()
        for index, span in enumerate(spans)
    ]
    still = [f"{title}: {spans[0].value}" for title, spans in by_property.items() if len(spans) == 1]
    missing = [f"{release.version}: {why}" for release in releases.measured for why in release.why]
    measured = [release for release in releases.measured if release.cells]
    return Outline(
        f"vLLM {report['versions']['from']} to {report['versions']['to']}, release by release",
        [
            Section("releases", "What moves, and at which release", [Table(COLUMNS, rows)] if rows else []),
            Section("still", "The same in all of them", [Lines(still)] if still else []),
            Section("claims", "Held against what inspect says", [Lines(_held_against_claims(releases))]),
            Section("missing", "Without figures", [Lines(missing)] if missing else []),
            not_seen(report),
        ],
        lead=report.get("description", ""),
        facts=[f"{len(measured)} of {len(releases.measured)} releases", *sorted({release.on for release in measured})],
    )


def _held_against_claims(releases: Releases) -> list[str]:
    """Say how often the loaded engines confirm what `inspect` says, and list the exceptions."""
    claimed = [
        (release.version, releases.properties[name], cell.word, cell.claimed)
        for release in releases.measured
        for name, cell in release.cells.items()
        if cell.word is not None and cell.claimed is not None
    ]
    others = [
        f"{version}: {title} is {word}, and inspect says {claim}"
        for version, title, word, claim in claimed
        if word.lower() != claim.lower()
    ]
    return [f"{len(claimed) - len(others)} of {len(claimed)} values are what inspect says", *others]
