"""SARIF 2.1.0, for code scanning: results with their rules, fixes, suppressions and fingerprints.

Paths are relative to the working directory; columns count characters, as everywhere in rlaudit.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rlaudit.inspection.documentation import rule_documentation
from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.report.rendering.statements import message_of, statements
from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding, Fix, Location
    from rlaudit.report.report import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# These suppressions stand in the source; SARIF calls all others external.
_IN_SOURCE = {"inline", "file"}


def render(report: "Report", width: int | None) -> str:
    """Return one run with every finding, the suppressed ones marked."""
    findings = statements(report)
    names = sorted({finding.rule for finding in findings})
    inspected = report.get("inspection")
    notifications = []
    if inspected:
        notifications += [_notification(file.reason, file.path) for file in inspected.unread]
        notifications += [_notification(bug) for bug in inspected.bugs]
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "rlaudit",
                        "version": report["rlaudit"],
                        "semanticVersion": report["rlaudit"],
                        "rules": [_rule(name, findings) for name in names],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The folder rlaudit was run in."}}},
                "invocations": [
                    {
                        "executionSuccessful": report["exit_code"] in {0, 1},
                        "exitCode": report["exit_code"],
                        "toolExecutionNotifications": notifications,
                    }
                ],
                "results": [_result(finding, names) for finding in findings],
            }
        ],
    }
    return json.dumps(log, indent=1, allow_nan=False) + "\n"


def _rule(name: str, findings: "Sequence[Finding]") -> dict[str, Any]:
    text = rule_documentation(name)
    first = next(finding for finding in findings if finding.rule == name)
    rule: dict[str, Any] = {"id": name, "name": "".join(word.capitalize() for word in name.split("-"))}
    if text:
        rule |= {
            "shortDescription": {"text": text.split("\n", 1)[0]},
            "fullDescription": {"text": text.split("\n\n", 2)[1] if "\n\n" in text else text},
            "help": {"text": text, "markdown": f"```text\n{text}\n```"},
        }
    rule["properties"] = {"tags": [word for word in ("vllm", first.layer) if word]}
    return rule


def _result(finding: "Finding", names: Sequence[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": names.index(finding.rule),
        "level": finding.severity,
        "message": {"text": printable(message_of(finding))},
        "locations": _locations(finding.location),
        "properties": {
            **({"layer": finding.layer} if finding.layer else {}),
            **({} if finding.so_today is None else {"soToday": finding.so_today}),
        },
    }
    if finding.fingerprint is not None:
        result["partialFingerprints"] = {"rlaudit/v1": finding.fingerprint}
    if finding.suppressed is not None:
        kind = "inSource" if finding.suppressed.kind in _IN_SOURCE else "external"
        result["suppressions"] = [{"kind": kind, "justification": printable(finding.suppressed.reason)}]
    if finding.fix is not None and all(edit.line is not None for edit in finding.fix.edits):
        result["fixes"] = [_fix(finding.fix)]
    return result


def _locations(place: "Location") -> list[dict[str, Any]]:
    if not place.path:
        return []
    region = {"startLine": max(1, place.line or 1), "startColumn": max(1, place.column or 1)}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(place.path), "region": region}}
    if place.setting:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(place.setting), "kind": "member"}]
    return [location]


def _fix(fix: "Fix") -> dict[str, Any]:
    by_path: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        region = {
            "startLine": edit.line,
            "startColumn": edit.column,
            "endLine": edit.end_line,
            "endColumn": edit.end_column,
        }
        replacement = {"deletedRegion": region, "insertedContent": {"text": edit.replacement}}
        by_path.setdefault(edit.path, []).append(replacement)
    changes = [{"artifactLocation": _artifact(path), "replacements": edits} for path, edits in by_path.items()]
    return {"description": {"text": printable(fix.description)}, "artifactChanges": changes}


def _artifact(path: str) -> dict[str, Any]:
    uri = quote(path.encode("utf-8", "surrogateescape"), safe="/~!$&'()*+,;=@-._")
    if path.startswith("/"):
        return {"uri": f"file://{uri}"}
    return {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _notification(text: str, path: str | None = None) -> dict[str, Any]:
    notification: dict[str, Any] = {"level": "error", "message": {"text": printable(text)}}
    if path is not None:
        notification["locations"] = [{"physicalLocation": {"artifactLocation": _artifact(path)}}]
    return notification


FORMAT = ReportFormat("sarif", render, for_programs=True)
