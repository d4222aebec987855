"""The report of a bump: which pins move, what that brings to the configs, and the known defects."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.rendering.outline import (
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
from rlaudit.rendering.outlines.inspect import count, findings_blocks, not_seen_elsewhere, summary
from rlaudit.report.shown_value import shown
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import Bump, CrossedDefect
    from rlaudit.report.parts.inspection import Finding, Location
    from rlaudit.report.report import Report

MOST_PLACES = 4
SEVERITIES = tuple(reversed(Severity))


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order; what many files share is said once."""
    bump = report["bump"]
    return Outline(
        _title(report),
        [
            Section("pins", "Pins", _pins(bump)),
            Section("findings", "What it brings to the configs", _findings(report)),
            Section("advisories", "Known defects of the two releases", _advisories(report)),
            Section("settings", "Settings that move", _settings(report)),
            listed("not-seen", NOT_SEEN, _not_seen(report), indent=1),
            Section("summary", "Summary", [Prose(_summary(report))]),
        ],
        facts=[count(number, severity) for severity, number in report["inspection"].counted.items()]
        if "inspection" in report
        else (),
        headed=True,
        indents=Indents(title=1, line=2),
        pictured=frozenset(),
        unfolded_by="-v",
    )


def _title(report: "Report") -> str:
    bump, versions = report["bump"], report["versions"]
    sides = f"{bump.base} to {bump.head}"
    if versions["from"] is None:
        return f"No known move of vLLM: {sides}"
    return f"vLLM {versions['from']} -> {versions['to']}: {sides}"


def _pins(bump: "Bump") -> list[Block]:
    rows = [[f"{one['path']}:{one['line']}", one["from"] or "-", one["to"] or "-"] for one in bump.moves]
    blocks: list[Block] = [Table(["file", "was", "is"], rows, values=True)] if rows else []
    return [*blocks, *([Lines(bump.said)] if bump.said else [])]


def _findings(report: "Report") -> list[Block]:
    """One of those that are alike, with the places of the others."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for one in report["findings"]:
        if one.suppressed is None:
            alike.setdefault((one.severity, one.rule, one.message), []).append(one)
    ranked = sorted(alike.values(), key=lambda found: SEVERITIES.index(found[0].severity))
    about = report.get("inspection")
    return findings_blocks([_with_places(one) for one in ranked], about is not None and about.fail_on == Severity.NOTE)


def _with_places(found: "Sequence[Finding]") -> "Finding":
    first, *others = found
    if not others:
        return first
    return replace(first, message=f"{first.message} Also at {_places([one.location for one in others])}.")


def _places(places: "Sequence[Location]") -> str:
    said = [f"{one.path}:{one.line}" for one in places]
    more = f" and {len(said) - MOST_PLACES} more" if len(said) > MOST_PLACES else ""
    return f"{', '.join(said[:MOST_PLACES])}{more}"


def _advisories(report: "Report") -> list[Block]:
    versions = report["versions"]
    told = {"entered": f"only vLLM {versions['to']}", "still open": "both", "left": f"only vLLM {versions['from']}"}
    met = [one for one in report["bump"].advisories if one.certain or one.open]
    rows = [[one.name, told[one.move], _met(one), one.says] for one in met]
    blocks: list[Block] = [Table(["advisory", "which has it", "configs here", "what"], rows)] if rows else []
    others = [
        f"{told[move]}: {', '.join(names)}"
        for move in told
        if (names := [one.name for one in report["bump"].advisories if one not in met and one.move == move])
    ]
    return [*blocks, *([Lines(others, "That no config here can meet")] if others else [])]


def _met(one: "CrossedDefect") -> str:
    """`2 have it, 5 may: it cannot be told whether the model is hybrid`."""
    said = [f"{one.certain} {'has' if one.certain == 1 else 'have'} it"] if one.certain else []
    said += [f"{one.open} may: it cannot be told whether {' and '.join(one.undecided)}"] if one.open else []
    return ", ".join(said)


def _settings(report: "Report") -> list[Block]:
    alike: dict[tuple[str, str, str], set[int | None]] = {}
    for row in report["settings"]:
        if row.moves:
            key = (row.name, shown(row.effective_from), shown(row.effective_to))
            alike.setdefault(key, set()).add(row.config)
    rows = [[*key, count(len(configs), "config")] for key, configs in alike.items() if key[1] != key[2]]
    versions = report["versions"]
    header = ["setting", f"vLLM {versions['from']}", f"vLLM {versions['to']}", "in"]
    return [Table(header, rows, values=True)] if rows else []


def _not_seen(report: "Report") -> list[str]:
    """Return what many configs leave open, with how many; then what belongs to no config."""
    open_in: dict[str, list[str]] = {}
    for config in report.get("configs", ()):
        for sentence in config.not_seen:
            open_in.setdefault(sentence, []).append(config.path)
    of_configs = [
        f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}: {sentence}"
        for sentence, paths in sorted(open_in.items(), key=lambda one: -len(one[1]))
    ]
    return [*of_configs, *not_seen_elsewhere(report)]


def _summary(report: "Report") -> list[str]:
    bump = report["bump"]
    if "inspection" not in report:
        return [f"{count(bump.pin_files, 'file')} with a pin of vLLM looked at. Exit code {report['exit_code']}."]
    standing = bump.standing
    old = report["versions"]["from"]
    said = [f"{count(standing, 'finding')} that vLLM {old} has already: rlaudit inspect --from {old} --to {old}."]
    new = report["versions"]["to"]
    names = (
        f"What vLLM {new} does not take any more, configs or not: rlaudit inspect --defaults --from {old} --to {new}."
    )
    return [*summary(report), *(said if standing else []), names]
