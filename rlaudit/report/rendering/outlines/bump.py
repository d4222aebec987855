"""The report of a bump: which pins move, what that brings to the configs, and the known defects."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.report.rendering.actions import action_lines
from rlaudit.report.rendering.inspected_answer import about_the_move
from rlaudit.report.rendering.outline import (
    NOT_SEEN,
    Block,
    Indents,
    Lines,
    Outline,
    Prose,
    Section,
    Table,
    listed,
)
from rlaudit.report.rendering.outlines.inspect import ACTIONS, findings_blocks, not_seen_elsewhere, summary
from rlaudit.report.shown_value import shown
from rlaudit.severity import Severity
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import Bump, CrossedDefect
    from rlaudit.report.parts.inspection import Finding, Location
    from rlaudit.report.report import Report

MOST_PLACES = 4
SEVERITIES = tuple(reversed(Severity))


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order; what many files share stands once."""
    bump = report["bump"]
    return Outline(
        title(report),
        [
            listed("actions", ACTIONS, action_lines(brought(report)), indent=1),
            Section("pins", "Pins", _pins(bump)),
            Section("findings", "What it brings to the configs", _findings(report)),
            Section("advisories", "Known defects of the two releases", _advisories(report)),
            Section("settings", "Settings that move", _settings(report)),
            listed("not-seen", NOT_SEEN, _not_seen(report), indent=1),
            Section("summary", "Summary", [Prose(_summary(report))]),
        ],
        facts=[counted(number, severity) for severity, number in report["inspection"].counted.items()]
        if "inspection" in report
        else (),
        about=[about_the_move(brought(report), report["inspection"].gone or ())] if "inspection" in report else (),
        indents=Indents(title=1, line=2),
        pictured=frozenset(),
        unfolded_by="-v",
    )


def brought(report: "Report") -> "list[Finding]":
    """Return what the move brings, the gravest first."""
    brought = [finding for finding in report["findings"] if finding.suppressed is None]
    return sorted(brought, key=lambda finding: SEVERITIES.index(finding.severity))


def title(report: "Report") -> str:
    """Return the move of vLLM, and the two trees."""
    bump, versions = report["bump"], report["versions"]
    sides = f"{bump.base} to {bump.head}"
    if versions["from"] is None:
        return f"No known move of vLLM: {sides}"
    return f"vLLM {versions['from']} -> {versions['to']}: {sides}"


def _pins(bump: "Bump") -> list[Block]:
    rows = [[f"{move['path']}:{move['line']}", move["from"] or "-", move["to"] or "-"] for move in bump.moves]
    blocks: list[Block] = [Table(["file", "was", "is"], rows, values=True)] if rows else []
    return [*blocks, *([Lines(bump.said)] if bump.said else [])]


def _findings(report: "Report") -> list[Block]:
    """Return one of those findings that are alike, with the places of the others."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in report["findings"]:
        if finding.suppressed is None:
            alike.setdefault((finding.severity, finding.rule, finding.message), []).append(finding)
    ranked = sorted(alike.values(), key=lambda group: SEVERITIES.index(group[0].severity))
    inspected = report.get("inspection")
    notes = inspected is not None and inspected.fail_on == Severity.NOTE
    return findings_blocks([_with_places(group) for group in ranked], notes)


def _with_places(findings: "Sequence[Finding]") -> "Finding":
    first, *others = findings
    also = f" Also at {_places([finding.location for finding in others])}." if others else ""
    # The section's title says that the move brings them.
    return replace(first, message=first.message + also, so_today=None)


def _places(places: "Sequence[Location]") -> str:
    named = ", ".join(f"{place.path}:{place.line}" for place in places[:MOST_PLACES])
    return f"{named} and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else named


def _advisories(report: "Report") -> list[Block]:
    versions = report["versions"]
    holders = {"entered": f"only vLLM {versions['to']}", "still open": "both", "left": f"only vLLM {versions['from']}"}
    met = [defect for defect in report["bump"].advisories if defect.certain or defect.open]
    rows = [[defect.name, holders[defect.move], _met(defect), defect.says] for defect in met]
    blocks: list[Block] = [Table(["advisory", "which has it", "configs here", "what"], rows)] if rows else []
    others = [
        f"{holders[move]}: {', '.join(names)}"
        for move in holders
        if (names := [defect.name for defect in report["bump"].advisories if defect not in met and defect.move == move])
    ]
    return [*blocks, *([Lines(others, "Not reachable from any config here")] if others else [])]


def _met(defect: "CrossedDefect") -> str:
    """Return `2 have it, 5 may: not known is whether the model is hybrid`."""
    clauses = [f"{defect.certain} {'has' if defect.certain == 1 else 'have'} it"] if defect.certain else []
    clauses += [f"{defect.open} may: not known is whether {' and '.join(defect.undecided)}"] if defect.open else []
    return ", ".join(clauses)


def _settings(report: "Report") -> list[Block]:
    alike: dict[tuple[str, str, str], set[int | None]] = {}
    for row in report["settings"]:
        if row.moves:
            key = (row.name, shown(row.effective_from), shown(row.effective_to))
            alike.setdefault(key, set()).add(row.config)
    rows = [[*key, counted(len(configs), "config")] for key, configs in alike.items() if key[1] != key[2]]
    versions = report["versions"]
    header = ["setting", f"vLLM {versions['from']}", f"vLLM {versions['to']}", "in"]
    return [Table(header, rows, values=True)] if rows else []


def _not_seen(report: "Report") -> list[str]:
    """Return what configs leave open, the most frequent first; then what belongs to no config."""
    open_in: dict[str, list[str]] = {}
    for config in report.get("configs", ()):
        for sentence in config.not_seen:
            open_in.setdefault(sentence, []).append(config.path)
    of_configs = [
        f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}: {sentence}"
        for sentence, paths in sorted(open_in.items(), key=lambda entry: -len(entry[1]))
    ]
    return [*of_configs, *not_seen_elsewhere(report)]


def _summary(report: "Report") -> list[str]:
    bump = report["bump"]
    if "inspection" not in report:
        return [f"{counted(bump.pin_files, 'file')} with a pin of vLLM looked at. Exit code {report['exit_code']}."]
    standing = bump.standing
    old = report["versions"]["from"]
    older = [f"{counted(standing, 'finding')} that vLLM {old} has already: rlaudit inspect --from {old} --to {old}."]
    new = report["versions"]["to"]
    names = f"What vLLM {new} does not take any more, configs or not: rlaudit explain {old}..{new}."
    return [*summary(report), *(older if standing else []), names]
