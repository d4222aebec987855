"""How the parts of an inspection are worded, the same in text and Markdown."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlaudit.report.report_format import Document

Row = Mapping[str, Any]
SEVERITIES = ("error", "warning", "note")
# In the order in which they must be judged.
LAYERS = ("semantic", "inference path", "objective", None)
OUTCOMES = {
    0: "no finding at or above {fail_on}",
    1: "a finding at or above {fail_on}",
    3: "the audit is not finished: {unfinished}",
    70: "a reader or a rule failed: that is a bug in rlaudit, please report it",
}


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


def location(found: Mapping[str, Any]) -> str:
    """path:line:column."""
    return ":".join(str(found[key]) for key in ("path", "line", "column") if found[key] is not None)


def title(config: Row, several: bool) -> str:
    """`conf/base.yaml: PipelineRL, vLLM 0.8.5 (V0) -> 0.18.1 (V1)`."""
    versions, engine = config["versions"], config["engine"]
    sides = [f"{versions[side]}{f' ({engine[side]})' if engine[side] else ''}" for side in ("from", "to")]
    moved = sides[1] if versions["from"] == versions["to"] else " -> ".join(sides)
    line = f":{config['line']}" if several and config["line"] is not None else ""
    return f"{config['path']}{line}: {config['title']}, vLLM {moved}"


def moving(document: Document, number: int) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of settings that move, or that do not arrive as they are written."""
    versions = document["configs"][number]["versions"]
    migrates = versions["from"] != versions["to"]
    rows = []
    for row in document["settings"]:
        if row["config"] == number and (row["moves"] or _arrives_changed(row)):
            effective = [shown(row["effective_from"])] if migrates else []
            written = "-" if row["written"] is None else shown(row["written"])
            rows.append([row["name"], written, *effective, shown(row["effective_to"]), row["origin"]])
    sides = [f"vLLM {versions['from']}"] if migrates else []
    return ["setting", "written", *sides, f"vLLM {versions['to']}", "decided by"], rows


def _arrives_changed(row: Row) -> bool:
    """Whether what is written is not what arrives; an empty value is how several dialects write a bare flag."""
    return (
        row["written"] is not None
        and row["written"] != row["effective_to"]
        and not (row["written"] == "" and row["effective_to"] is True)
    )


def moving_by_default(document: Document) -> tuple[list[str], list[list[str]]]:
    """Header and rows of what moves without a config."""
    versions = document["versions"]
    rows = [
        [row["name"], shown(row["effective_from"]), shown(row["effective_to"]), row["note"]]
        for row in document["settings"]
        if row["config"] is None
    ]
    return ["setting", f"vLLM {versions['from']}", f"vLLM {versions['to']}", "note"], rows


def not_seen_elsewhere(document: Document) -> list[str]:
    """What was not seen and belongs to no config: files that were not read, and the limits of all reading."""
    of_configs = {f"{config['path']}: {line}" for config in document.get("configs", ()) for line in config["not_seen"]}
    return [line for line in document["not_seen"] if line not in of_configs]


def lost(config: Row) -> list[str]:
    """What is written and has no effect, a line each."""
    return [
        f"{location(one['location'])}: {one['name']} ({shown(one['written'])}): {one['reason']}"
        for one in config["lost"]
    ]


def findings_of(document: Document, path: str | None, paths: Sequence[str]) -> list[Row]:
    """Findings that count, of one file, the gravest first; None for those of no inspected file, such as settings."""
    found = [
        finding
        for finding in document["findings"]
        if finding["suppressed"] is None
        and (finding["location"]["path"] == path if path is not None else finding["location"]["path"] not in paths)
    ]
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding["severity"]), LAYERS.index(finding["layer"])))


def fix_line(fix: Row) -> str:
    """What a fix does, and the option that makes it."""
    return f"{fix['description']} ({'--fix' if fix['safe'] else '--fix=unsafe'} does it)"


def summary(document: Document) -> list[str]:
    """What was read, what was found, and why the exit code is what it is."""
    about = document.get("inspection")
    if about is None:
        return []
    read = [
        f"{_count(about['files_read'], 'file')} read",
        f"{about['files_with_config']} with {_count(about['configs'], 'rollout config')}",
        _count(about["settings"], "setting"),
        f"{_count(about['rules'], 'rule')} run ({about['platform']}: {about['machine']})",
    ]
    found = ", ".join(_count(number, severity) for severity, number in about["counted"].items())
    kinds = [f"{number} {kind}" for kind, number in about["suppressed"].items()]
    suppressed = f"; suppressed: {', '.join(kinds)}" if kinds else ""
    stale = about["stale_baseline_entries"]
    gone = f"; {_count(stale, 'baseline entry', 'baseline entries')} no longer found" if stale else ""
    exit_ = f"Exit code {document['exit_code']}: {_outcome(document)}."
    return [f"{', '.join(read)}.", *_fixes(about["fixes"]), f"{found}{suppressed}{gone}.", exit_]


def _outcome(document: Document) -> str:
    about = document["inspection"]
    named = [one["path"] for one in about["unread"] if one["wanted"]]
    unfinished = f"{', '.join(named)} could not be read" if named else "no rollout config was found"
    if document["exit_code"] == 0 and not about["configs"]:
        return "no rollout config was found"
    if document["exit_code"] == 0 and any(about["counted"].values()) and about["fail_on"] == "never":
        return "findings do not fail this run"
    return OUTCOMES[document["exit_code"]].format(fail_on=about["fail_on"], unfinished=unfinished)


def _fixes(fixes: Row) -> list[str]:
    lines = []
    if fixes["made"]:
        done = "Fixed" if fixes["written"] else "Would fix"
        where = f"{_count(len(fixes['files']), 'file')}: {', '.join(fixes['files'])}"
        lines.append(f"{done} {_count(fixes['made'], 'finding')} in {where}.")
    return lines + [f"Not fixed: {one}." for one in fixes["refused"]]


def _count(number: int, word: str, plural: str = "") -> str:
    return f"{number} {word if number == 1 else plural or word + 's'}"
