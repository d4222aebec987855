"""JUnit XML, for CI servers: a test case for each file and rule with findings.

A case fails if a finding counts for --fail-on, so that the server's colour is the exit code's. Suppressed findings are
skipped cases. What could not be read is an error. A file or a measurement without findings is one case that passes.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.report.rendering.statements import fails, location, message_of, statements
from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

# XML 1.0 has no way to write these, not even as references.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def render(report: "Report", width: int | None) -> str:
    """Return a suite for each file."""
    inspected = report.get("inspection")
    suites = {config.path: _suite(config.path) for config in report.get("configs", ())}
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for finding in statements(report):
        grouped.setdefault((finding.location.path or "rlaudit", finding.rule), []).append(finding)
    for (path, rule), findings in grouped.items():
        _case(suites.setdefault(path, _suite(path)), path, rule, findings, report)
    for path, suite in suites.items():
        if not len(suite):
            _add(suite, "testcase", {"classname": path, "name": "inspect"})
    errors: list[tuple[str, str, str, str]] = []
    if inspected:
        errors += [(file.path, "read", "unread", file.reason) for file in inspected.unread if file.wanted]
        errors += [("rlaudit", "bug", "bug", bug) for bug in inspected.bugs]
    for path, name, kind, message in errors:
        case = _add(suites.setdefault(path, _suite(path)), "testcase", {"classname": path, "name": name})
        _add(case, "error", {"type": kind, "message": message})
    if not suites:
        # Servers mistake a report without a case for a job that failed.
        suites["rlaudit"] = _suite("rlaudit")
        _add(suites["rlaudit"], "testcase", {"classname": "rlaudit", "name": report["command"]})
    root = ET.Element("testsuites", {"name": "rlaudit"})
    root.extend(suites.values())
    for element in (root, *suites.values()):
        element.attrib |= {name: str(sum(1 for _ in element.iter(tag))) for name, tag in _COUNTED.items()}
    ET.indent(root, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, path: str, rule: str, findings: "Sequence[Finding]", report: "Report") -> None:
    counted = [finding for finding in findings if finding.suppressed is None]
    suppressed = [finding.suppressed for finding in findings if finding.suppressed is not None]
    attributes = {"classname": path, "name": rule}
    if findings[0].location.line is not None:
        attributes |= {"file": path, "line": str(findings[0].location.line)}
    case = _add(suite, "testcase", attributes)
    if not counted:
        reasons = "; ".join(f"{suppression.kind}: {suppression.reason}" for suppression in suppressed)
        _add(case, "skipped", {"message": reasons})
        return
    lines = "\n".join(
        f"{location(finding.location)} {finding.severity}: {message_of(finding)}".lstrip() for finding in counted
    )
    failing = [finding for finding in counted if fails(finding, report)]
    if failing:
        gravest = max(failing, key=lambda finding: finding.severity.rank)
        _add(case, "failure", {"type": gravest.severity, "message": gravest.message}, lines)
    else:
        _add(case, "system-out", {}, lines)


def _suite(path: str) -> ET.Element:
    return ET.Element("testsuite", {"name": _valid(path)})


def _add(parent: ET.Element, name: str, attributes: Mapping[str, str], text: str | None = None) -> ET.Element:
    added = ET.SubElement(parent, name, {key: _valid(value) for key, value in attributes.items()})
    added.text = None if text is None else _valid(text)
    return added


def _valid(text: str) -> str:
    return _NOT_XML.sub("\ufffd", printable(text))


FORMAT = ReportFormat("junit", render, markup=True)
