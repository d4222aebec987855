"""JUnit XML, for CI servers: a test case for each file and rule with findings.

A case fails where a finding reaches --fail-on, so that the server's colour is the exit code's. Suppressed findings are
skipped cases, what could not be read is an error, and a file or a measurement without findings is one case that passes.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.rendering.report_format import ReportFormat
from rlaudit.rendering.statements import location, statements

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

# XML 1.0 has no way to write these, not even as references.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RANKS = {"note": 0, "warning": 1, "error": 2, "never": 3}
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def render(document: "Report", width: int | None) -> str:
    """Return a suite for each file."""
    about = document.get("inspection")
    threshold = _RANKS[about.fail_on if about else "error"]
    suites = {config.path: _suite(config.path) for config in document.get("configs", ())}
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for one in statements(document):
        grouped.setdefault((one.location.path or "rlaudit", one.rule), []).append(one)
    for (path, rule), found in grouped.items():
        _case(suites.setdefault(path, _suite(path)), path, rule, found, threshold)
    for path, suite in suites.items():
        if not len(suite):
            _add(suite, "testcase", {"classname": path, "name": "inspect"})
    broken = [(file.path, "read", "unread", file.reason) for file in (about.unread if about else ()) if file.wanted]
    broken += [("rlaudit", "bug", "bug", bug) for bug in (about.bugs if about else ())]
    for path, name, kind, said in broken:
        case = _add(suites.setdefault(path, _suite(path)), "testcase", {"classname": path, "name": name})
        _add(case, "error", {"type": kind, "message": said})
    if not suites:
        # Servers take a report without a case for a job that went wrong.
        suites["rlaudit"] = _suite("rlaudit")
        _add(suites["rlaudit"], "testcase", {"classname": "rlaudit", "name": document["command"]})
    root = ET.Element("testsuites", {"name": "rlaudit"})
    root.extend(suites.values())
    for counted in (root, *suites.values()):
        counted.attrib |= {name: str(sum(1 for _ in counted.iter(tag))) for name, tag in _COUNTED.items()}
    ET.indent(root, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, path: str, rule: str, found: "Sequence[Finding]", threshold: int) -> None:
    counted = [one for one in found if one.suppressed is None]
    suppressed = [one.suppressed for one in found if one.suppressed is not None]
    attributes = {"classname": path, "name": rule}
    if found[0].location.line is not None:
        attributes |= {"file": path, "line": str(found[0].location.line)}
    case = _add(suite, "testcase", attributes)
    if not counted:
        _add(case, "skipped", {"message": "; ".join(f"{one.kind}: {one.reason}" for one in suppressed)})
        return
    lines = "\n".join(f"{location(one.location)} {one.severity}: {one.message}".lstrip() for one in counted)
    gravest = max(counted, key=lambda one: _RANKS[one.severity])
    if _RANKS[gravest.severity] >= threshold:
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
    return _NOT_XML.sub("\ufffd", text)


FORMAT = ReportFormat("junit", render)
