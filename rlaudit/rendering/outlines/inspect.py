"""The report of an inspection: each file, what was found there, what moves, and what was not seen."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rlaudit.layers import Layer
from rlaudit.rendering.actions import action_lines
from rlaudit.rendering.inspected_settings import settings_blocks
from rlaudit.rendering.outline import (
    NOT_SEEN,
    Block,
    Findings,
    Folded,
    Indents,
    Lines,
    Outline,
    Prose,
    Section,
    Table,
    listed,
    verdicts,
)
from rlaudit.rendering.statements import location
from rlaudit.report.shown_value import shown
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Config, Finding, Fixes, Inspected, Setting
    from rlaudit.report.report import Report
    from rlaudit.settings.shown_step import ShownStep

SEVERITIES = tuple(reversed(Severity))
# In the order in which they must be judged.
LAYERS = (*Layer, None)
ACTIONS, LOST = "What to do", "Written, and without effect"
LAST_STEPS = ["step or batch", "process", "time", "requests", "tokens", "cached", ""]
OUTCOMES = {
    0: "no finding at or above {fail_on}",
    1: "a finding at or above {fail_on}",
    3: "the audit is not finished: {unfinished}",
    70: "a reader or a rule failed: that is a bug in rlaudit, please report it",
}


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order: what to do, what was found, what moves, what is open."""
    configs = report.get("configs", ())
    paths = list(dict.fromkeys(config.path for config in configs))
    about = report.get("inspection")
    found = _counting(report["findings"])
    # Of one file its name comes first, and what is found in the files that it is read with is found of it.
    alone = len(paths) == 1
    others = [] if alone else [finding for finding in found if finding.location.path not in set(paths)]
    notes = about is not None and about.fail_on == Severity.NOTE
    lines = action_lines(found)
    actions: list[Block] = [Lines(lines, ACTIONS)] if lines else []
    return Outline(
        _title(configs),
        [
            verdicts(report, page_only=True),
            Section("actions", ACTIONS, [] if alone else actions, gathers=True),
            *_files(report, paths, actions if alone else (), notes=notes),
            Section("others", "Elsewhere", findings_blocks(others, notes), gathers=True),
            _defaults(report),
            listed("failed", "Failed", about.bugs if about else (), indent=1),
            listed("not-seen", NOT_SEEN, not_seen_elsewhere(report), indent=1),
            Section("summary", "Summary", [Prose(summary(report))] if about else [], gathers=True),
        ],
        facts=[count(number, severity) for severity, number in about.counted.items()] if about else (),
        headed=False,
        indents=Indents(title=1, line=2),
        pictured=frozenset(),
        unfolded_by="-v",
    )


def _title(configs: "Sequence[Config]") -> str:
    """Return the file, or how many."""
    if len(configs) == 1:
        return _config_title(configs[0], several=False)
    return f"{len(configs)} rollout configs" if configs else "No rollout config"


def _files(report: "Report", paths: Sequence[str], first: Sequence[Block], notes: bool) -> Iterator[Section]:
    """One for each path, the first after the blocks `first`.

    What a report lists flat is grouped once: a repository has thousands of rows.
    """
    configs: dict[str, list[tuple[Config, list[Setting]]]] = {}
    settings: dict[int | None, list[Setting]] = {}
    findings: dict[str | None, list[Finding]] = {}
    for row in report["settings"]:
        settings.setdefault(row.config, []).append(row)
    for finding in report["findings"]:
        path = paths[0] if len(paths) == 1 else finding.location.path
        findings.setdefault(path, []).append(finding)
    for number, config in enumerate(report.get("configs", ())):
        configs.setdefault(config.path, []).append((config, settings.get(number, [])))
    for place, path in enumerate(paths):
        found = findings.get(path, [])
        blocks = [*first, *findings_blocks(_counting(found), notes), *_configs(configs[path], found)]
        title, *also = (_config_title(config, len(configs[path]) > 1) for config, _ in configs[path])
        yield Section(f"file-{place}", title, blocks, also)


def findings_blocks(found: "Sequence[Finding]", notes: bool) -> list[Block]:
    """Return the findings that a reader may have to act on, and the notes. notes: whether they count as well."""
    later = [] if notes else [one for one in found if one.severity == Severity.NOTE]
    first = [one for one in found if notes or one.severity != Severity.NOTE]
    blocks: list[Block] = [Findings(first)] if first else []
    return [*blocks, *([Folded(f"Notes ({len(later)})", Findings(later), kind="notes")] if later else [])]


def _configs(own: "Sequence[tuple[Config, list[Setting]]]", found: "Sequence[Finding]") -> Iterator[Block]:
    for config, rows in own:
        yield from _config(config, rows, found, len(own) > 1)


def _config(config: "Config", settings: "Sequence[Setting]", found: "Sequence[Finding]", several: bool) -> list[Block]:
    where = f" (line {config.line})" if several and config.line is not None else ""
    grave = {one.setting for one in found if one.severity != Severity.NOTE and one.setting is not None}
    seen = config.recorded or ()
    blocks: list[Block] = [Lines(seen, f"Recorded{where}")] if seen else []
    last = [_last_step(one) for one in config.last_steps or ()]
    blocks += [Table(LAST_STEPS, last, f"The last steps{where}")] if last else []
    return [*blocks, *settings_blocks(config, settings, grave, where), *_lost(config, found)]


def _lost(config: "Config", found: "Sequence[Finding]") -> Iterator[Block]:
    """Yield what is written without effect; of what findings say so much it is folded."""
    places = {location(finding.location) for finding in found}
    unsaid: list[str] = []
    said: list[str] = []
    for one in config.lost:
        where = location(one.location)
        line = f"{where}: {one.name} ({shown(one.written)}): {one.reason}"
        (said if where in places else unsaid).append(line)
    if unsaid:
        yield Lines(unsaid, LOST)
    if said:
        yield Folded(f"{LOST} ({len(said)})", Lines(said), kind="settings written without effect")


def _last_step(one: "ShownStep") -> list[str]:
    cached = "-" if one.cached is None else str(one.cached)
    counts = (str(one.requests), str(one.tokens), cached)
    return [f"{one.what} {one.number}", str(one.process), one.time, *counts, one.state]


def _config_title(config: "Config", several: bool) -> str:
    """`conf/base.yaml: PipelineRL, vLLM 0.8.5 (V0) -> 0.18.1 (V1)`."""
    versions = config.versions
    before, after = _release(config, "from"), _release(config, "to")
    moved = after if versions["from"] == versions["to"] else f"{before} -> {after}"
    line = f":{config.line}" if several and config.line is not None else ""
    return f"{config.path}{line}: {config.title}, vLLM {moved}"


def _release(config: "Config", side: Literal["from", "to"]) -> str:
    """`0.18.1 (V1)`; of a release that is not catalogued also the one that stands for it."""
    version, read_as, engine = config.versions[side], config.read_as[side], config.engine[side]
    said = [*([engine] if engine else []), *([f"read as {read_as}"] if read_as != version else [])]
    return f"{version} ({', '.join(said)})" if said else f"{version}"


def _counting(findings: "Iterable[Finding]") -> "list[Finding]":
    """Return the findings that count, the gravest first."""
    found = [finding for finding in findings if finding.suppressed is None]
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), LAYERS.index(finding.layer)))


def _defaults(report: "Report") -> Section:
    """Return what moves without a config."""
    versions = report["versions"]
    rows = [
        [row.name, shown(row.effective_from), shown(row.effective_to), row.note]
        for row in report["settings"]
        if row.config is None
    ]
    header = ["setting", f"vLLM {versions['from']}", f"vLLM {versions['to']}", "note"]
    title = f"vLLM {versions['from']} -> {versions['to']}: {report.get('description', 'defaults')}"
    return Section("moving", title, [Table(header, rows, values=True)] if rows else [])


def not_seen_elsewhere(report: "Report") -> list[str]:
    """Return what was not seen and belongs to no config: files that were not read, and the limits of all reading."""
    of_configs = {f"{config.path}: {line}" for config in report.get("configs", ()) for line in config.not_seen}
    return [line for line in report["not_seen"] if line not in of_configs]


def summary(report: "Report") -> list[str]:
    """Return what was read, what was found, and why the exit code is what it is."""
    about = report["inspection"]
    read = [
        f"{count(about.files_read, 'file')} read",
        f"{about.files_with_config} with {count(about.configs, 'rollout config')}",
        count(about.settings, "setting"),
        f"{count(about.rules, 'rule')} run ({about.platform}: {about.machine})",
    ]
    found = ", ".join(count(number, severity) for severity, number in about.counted.items())
    kinds = [f"{number} {kind}" for kind, number in about.suppressed.items()]
    suppressed = f"; suppressed: {', '.join(kinds)}" if kinds else ""
    stale = about.stale_baseline_entries
    gone = f"; {count(stale, 'baseline entry', 'baseline entries')} no longer found" if stale else ""
    exit_ = f"Exit code {report['exit_code']}: {_outcome(report['exit_code'], about)}."
    return [f"{', '.join(read)}.", *_fixes(about.fixes), f"{found}{suppressed}{gone}.", exit_]


def _outcome(exit_code: int, about: "Inspected") -> str:
    named = [one.path for one in about.unread if one.wanted]
    unfinished = "no rollout config was found" if not about.configs else "not every file could be written"
    if named:
        unfinished = f"{', '.join(named)} could not be read"
    if exit_code == 0 and not about.configs:
        return "no rollout config was found"
    if exit_code == 0 and any(about.counted.values()) and about.fail_on == "never":
        return "findings do not fail this run"
    return OUTCOMES[exit_code].format(fail_on=about.fail_on, unfinished=unfinished)


def _fixes(fixes: "Fixes") -> list[str]:
    lines = []
    if fixes.made:
        done = "Fixed" if fixes.written else "Would fix"
        where = f"{count(len(fixes.files), 'file')}: {', '.join(fixes.files)}"
        lines.append(f"{done} {count(fixes.made, 'finding')} in {where}.")
    return lines + [f"Not fixed: {one}." for one in fixes.refused]


def count(number: int, word: str, plural: str = "") -> str:
    """`1 finding`, `3 findings`."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
