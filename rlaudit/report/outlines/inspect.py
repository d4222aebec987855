"""The report of an inspection: each file, what was found there, what moves, and what was not seen."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer
from rlaudit.report.outline import (
    NOT_SEEN,
    Block,
    Findings,
    Indents,
    Lines,
    Outline,
    Prose,
    Section,
    Table,
    listed,
    verdicts,
)
from rlaudit.report.statements import location

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Config, Finding, Fixes, Inspected, LastStep, Setting
    from rlaudit.report.report import Report

SEVERITIES = tuple(reversed(Severity))
# In the order in which they must be judged.
LAYERS = (*Layer, None)
MOVES = "Settings that move or do not arrive as written"
RAN = "As written, and as vLLM ran it"
LAST_STEPS = ["step or batch", "process", "time", "requests", "tokens", "cached", ""]
# Of the reasons in a column: two of these and the settings' names still fit a wide terminal.
LONGEST_REASON = 80
OUTCOMES = {
    0: "no finding at or above {fail_on}",
    1: "a finding at or above {fail_on}",
    3: "the audit is not finished: {unfinished}",
    70: "a reader or a rule failed: that is a bug in rlaudit, please report it",
}


def outline(report: "Report") -> Outline:
    """In reading order."""
    configs = report.get("configs", ())
    paths = list(dict.fromkeys(config["path"] for config in configs))
    about = report.get("inspection")
    known = set(paths)
    others = _counting(finding for finding in report["findings"] if finding["location"]["path"] not in known)
    return Outline(
        _title(configs),
        [
            verdicts(report, page_only=True),
            *_files(report, paths),
            Section("others", "Elsewhere", [Findings(others)] if others else [], gathers=True),
            _defaults(report),
            listed("failed", "Failed", about["bugs"] if about else (), indent=1),
            listed("not-seen", NOT_SEEN, not_seen_elsewhere(report), indent=1),
            Section("summary", "Summary", [Prose(summary(report))] if about else [], gathers=True),
        ],
        facts=[count(number, severity) for severity, number in about["counted"].items()] if about else (),
        headed=False,
        indents=Indents(title=1, line=2),
        pictured=frozenset(),
    )


def _title(configs: "Sequence[Config]") -> str:
    """The file, or how many."""
    if len(configs) == 1:
        return _config_title(configs[0], several=False)
    return f"{len(configs)} rollout configs" if configs else "No rollout config"


def _files(report: "Report", paths: Sequence[str]) -> Iterator[Section]:
    """One for each path. What a report lists flat is gathered once: a repository has thousands of rows."""
    configs: dict[str, list[tuple[Config, list[Setting]]]] = {}
    settings: dict[int | None, list[Setting]] = {}
    findings: dict[str | None, list[Finding]] = {}
    for row in report["settings"]:
        settings.setdefault(row.get("config"), []).append(row)
    for finding in report["findings"]:
        findings.setdefault(finding["location"]["path"], []).append(finding)
    for number, config in enumerate(report.get("configs", ())):
        configs.setdefault(config["path"], []).append((config, settings.get(number, [])))
    for place, path in enumerate(paths):
        yield _file(place, configs[path], _counting(findings.get(path, [])))


def _file(place: int, own: "Sequence[tuple[Config, list[Setting]]]", found: "list[Finding]") -> Section:
    several = len(own) > 1
    blocks: list[Block] = [Findings(found)] if found else []
    for config, rows in own:
        blocks += _config(config, rows, several)
    first, *also = (_config_title(config, several) for config, _ in own)
    return Section(f"file-{place}", first, blocks, also)


def _config(config: "Config", settings: "Sequence[Setting]", several: bool) -> list[Block]:
    where = f" (line {config['line']})" if several and config["line"] is not None else ""
    header, rows, reasons = _moving(config, settings)
    lost = [
        f"{location(one['location'])}: {one['name']} ({shown(one['written'])}): {one['reason']}"
        for one in config["lost"]
    ]
    seen = config.get("recorded", ())
    blocks: list[Block] = [Lines(seen, f"Recorded{where}")] if seen else []
    last = [_last_step(one) for one in config.get("last_steps", ())]
    blocks += [Table(LAST_STEPS, last, f"The last steps{where}")] if last else []
    blocks += [Table(header, rows, f"{RAN if seen else MOVES}{where}", values=True)] if rows else []
    blocks += [Lines(reasons, "Why a value is not known")] if reasons else []
    blocks += [Lines(lost, "Written, and without effect")] if lost else []
    return [*blocks, *([Lines(config["not_seen"], "Not seen in this file")] if config["not_seen"] else [])]


def _last_step(one: "LastStep") -> list[str]:
    cached = "-" if one["cached"] is None else str(one["cached"])
    counts = (str(one["requests"]), str(one["tokens"]), cached)
    return [f"{one['what']} {one['number']}", str(one["process"]), one["time"], *counts, one["state"]]


def _config_title(config: "Config", several: bool) -> str:
    """`conf/base.yaml: PipelineRL, vLLM 0.8.5 (V0) -> 0.18.1 (V1)`."""
    versions, engine = config["versions"], config["engine"]
    before, after = (
        f"{version}{f' ({kind})' if kind else ''}"
        for version, kind in ((versions["from"], engine["from"]), (versions["to"], engine["to"]))
    )
    moved = after if versions["from"] == versions["to"] else f"{before} -> {after}"
    line = f":{config['line']}" if several and config["line"] is not None else ""
    return f"{config['path']}{line}: {config['title']}, vLLM {moved}"


def _counting(findings: "Iterable[Finding]") -> "list[Finding]":
    """Those that count, the gravest first."""
    found = [finding for finding in findings if finding["suppressed"] is None]
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding["severity"]), LAYERS.index(finding["layer"])))


def _moving(config: "Config", settings: "Sequence[Setting]") -> tuple[list[str], list[list[str]], list[str]]:
    """Header and rows of the table of settings that move, or that do not arrive as they are written; and the reasons
    that are too long for it, to which its cells point.
    """
    versions = config["versions"]
    migrates = versions["from"] != versions["to"]
    rows = []
    long: dict[str, int] = {}
    for row in settings:
        if row.get("moves") or _arrives_changed(row) or (config.get("recorded") and _was_written(row)):
            effective = [_cell(row["effective_from"], row, long)] if migrates else []
            written = "-" if row["written"] is None else shown(row["written"])
            rows.append([row["name"], written, *effective, _cell(row["effective_to"], row, long), row["origin"]])
    sides = [f"vLLM {versions['from']}"] if migrates else []
    reasons = [f"({number}) {reason}" for reason, number in long.items()]
    return ["setting", "written", *sides, f"vLLM {versions['to']}", "decided by"], rows, reasons


def _cell(value: Any, row: "Setting", long: dict[str, int]) -> str:
    """A value for a column; a long reason not to know it is kept in `long`, and named by its number."""
    if isinstance(value, dict) and len(value) == 1:
        if len(reason := str(value.get("unknown", ""))) > LONGEST_REASON:
            return f"unknown ({long.setdefault(reason, len(long) + 1)})"
        if "absent" in value and row.get("group") == "environment":
            return "not read"
    return shown(value)


def _was_written(row: "Setting") -> bool:
    """Whether somebody set it for vLLM: an argument, or a variable of its own."""
    of_vllm = row.get("group") == "engine" or (row.get("group") == "environment" and row["name"].startswith("VLLM_"))
    return of_vllm and row["written"] is not None and row["origin"] != "engine"


def _arrives_changed(row: "Setting") -> bool:
    """Whether what is written is not what arrives; an empty value is how several dialects write a bare flag."""
    written, effective = row["written"], row["effective_to"]
    return written is not None and written != effective and not (written == "" and effective is True)


def _defaults(report: "Report") -> Section:
    """What moves without a config."""
    versions = report["versions"]
    rows = [
        [row["name"], shown(row["effective_from"]), shown(row["effective_to"]), row.get("note", "")]
        for row in report["settings"]
        if row.get("config") is None
    ]
    header = ["setting", f"vLLM {versions['from']}", f"vLLM {versions['to']}", "note"]
    title = f"vLLM {versions['from']} -> {versions['to']}: {report.get('description', 'defaults')}"
    return Section("moving", title, [Table(header, rows, values=True)] if rows else [])


def shown(value: Any) -> str:
    """A value as a config would spell it; what is not known says so."""
    if isinstance(value, dict) and len(value) == 1:
        if "unknown" in value:
            return f"unknown: {value['unknown']}"
        if "absent" in value:
            return "no such argument"
    if isinstance(value, str):
        return value if value.strip() else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)


def not_seen_elsewhere(report: "Report") -> list[str]:
    """What was not seen and belongs to no config: files that were not read, and the limits of all reading."""
    of_configs = {f"{config['path']}: {line}" for config in report.get("configs", ()) for line in config["not_seen"]}
    return [line for line in report["not_seen"] if line not in of_configs]


def summary(report: "Report") -> list[str]:
    """What was read, what was found, and why the exit code is what it is."""
    about = report["inspection"]
    read = [
        f"{count(about['files_read'], 'file')} read",
        f"{about['files_with_config']} with {count(about['configs'], 'rollout config')}",
        count(about["settings"], "setting"),
        f"{count(about['rules'], 'rule')} run ({about['platform']}: {about['machine']})",
    ]
    found = ", ".join(count(number, severity) for severity, number in about["counted"].items())
    kinds = [f"{number} {kind}" for kind, number in about["suppressed"].items()]
    suppressed = f"; suppressed: {', '.join(kinds)}" if kinds else ""
    stale = about["stale_baseline_entries"]
    gone = f"; {count(stale, 'baseline entry', 'baseline entries')} no longer found" if stale else ""
    exit_ = f"Exit code {report['exit_code']}: {_outcome(report['exit_code'], about)}."
    return [f"{', '.join(read)}.", *_fixes(about["fixes"]), f"{found}{suppressed}{gone}.", exit_]


def _outcome(exit_code: int, about: "Inspected") -> str:
    named = [one["path"] for one in about["unread"] if one["wanted"]]
    unfinished = f"{', '.join(named)} could not be read" if named else "no rollout config was found"
    if exit_code == 0 and not about["configs"]:
        return "no rollout config was found"
    if exit_code == 0 and any(about["counted"].values()) and about["fail_on"] == "never":
        return "findings do not fail this run"
    return OUTCOMES[exit_code].format(fail_on=about["fail_on"], unfinished=unfinished)


def _fixes(fixes: "Fixes") -> list[str]:
    lines = []
    if fixes["made"]:
        done = "Fixed" if fixes["written"] else "Would fix"
        where = f"{count(len(fixes['files']), 'file')}: {', '.join(fixes['files'])}"
        lines.append(f"{done} {count(fixes['made'], 'finding')} in {where}.")
    return lines + [f"Not fixed: {one}." for one in fixes["refused"]]


def count(number: int, word: str, plural: str = "") -> str:
    """`1 finding`, `3 findings`."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
