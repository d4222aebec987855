"""GitLab's code quality report: what a merge request shows beside its lines (`artifacts: reports: codequality`).

A finding without a file stands at the repository's root. Fields as GitLab documents them: description, check_name,
fingerprint (unique in a report), severity, location.path and location.lines.begin.
"""

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.report.rendering.statements import counted, message_of
from rlaudit.severity import Severity

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: "Report", width: int | None) -> str:
    """Return an issue for each finding that counts, and one for each file that was given and could not be read."""
    issues = [_issue(finding) for finding in counted(report)]
    inspected = report.get("inspection")
    unread = [file for file in (inspected.unread if inspected else ()) if file.wanted]
    issues += [_entry(f"could not be read: {file.reason}", "not-read", "major", file.path, None) for file in unread]
    seen: Counter[str] = Counter()
    for issue in issues:
        # The same finding twice in one file has one fingerprint, and GitLab shows the last of each.
        again = seen[issue["fingerprint"]]
        seen[issue["fingerprint"]] += 1
        issue["fingerprint"] += f"-{again}" if again else ""
    return json.dumps(issues, indent=1) + "\n"


def _issue(finding: "Finding") -> dict[str, Any]:
    place = finding.location
    issue = _entry(message_of(finding), finding.rule, SEVERITIES[Severity(finding.severity)], place.path, place.line)
    return issue | ({"fingerprint": finding.fingerprint} if finding.fingerprint is not None else {})


def _entry(message: str, rule: str, severity: str, path: str | None, line: int | None) -> dict[str, Any]:
    return {
        "description": message,
        "check_name": rule,
        "fingerprint": hashlib.sha256(f"{rule}\0{path}\0{message}".encode(errors="surrogatepass")).hexdigest()[:32],
        "severity": severity,
        "location": {"path": path or ".", "lines": {"begin": line or 1}},
    }


FORMAT = ReportFormat("gitlab", render, for_programs=True)
