"""JUnit XML, for CI servers: a test case for each file and rule with findings.

A case fails where a finding reaches --fail-on, so that the server's colour is the exit code's. Suppressed findings are
skipped cases, what could not be read is an error, and a file or a measurement without findings is one case that passes.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from rlaudit.report.report_format import ReportFormat
from rlaudit.report.statements import location, statements

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

# XML 1.0 has no way to write these, not even as references.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RANKS = {"note": 0, "warning": 1, "error": 2, "never": 3}


def render(document: "Report", width: int | None) -> str:
    """A suite for each file."""
    about = document.get("inspection", {})
    threshold = _RANKS[about.get("fail_on", "error")]
    cases: dict[str, list[str]] = {config["path"]: [] for config in document.get("configs", ())}
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for one in statements(document):
        grouped.setdefault((one["location"]["path"] or "rlaudit", one["rule"]), []).append(one)
    for (path, rule), found in grouped.items():
        cases.setdefault(path, []).append(_case(path, rule, found, threshold))
    for path, own in cases.items():
        if not own:
            own.append(_element("testcase", {"classname": path, "name": "inspect"}, ""))
    for file in about.get("unread", ()):
        if file["wanted"]:
            error = _element("error", {"type": "unread", "message": file["reason"]}, "")
            cases.setdefault(file["path"], []).append(
                _element("testcase", {"classname": file["path"], "name": "read"}, error)
            )
    for bug in about.get("bugs", ()):
        error = _element("error", {"type": "bug", "message": bug}, "")
        cases.setdefault("rlaudit", []).append(_element("testcase", {"classname": "rlaudit", "name": "bug"}, error))
    if not cases:
        # Servers take a report without a case for a job that went wrong.
        cases["rlaudit"] = [_element("testcase", {"classname": "rlaudit", "name": document["command"]}, "")]
    suites = [_element("testsuite", {"name": path, **_totals(own)}, "\n".join(own)) for path, own in cases.items()]
    everything = [case for own in cases.values() for case in own]
    root = _element("testsuites", {"name": "rlaudit", **_totals(everything)}, "\n".join(suites))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'


def _case(path: str, rule: str, found: "Sequence[Finding]", threshold: int) -> str:
    counted = [one for one in found if one["suppressed"] is None]
    suppressed = [one["suppressed"] for one in found if one["suppressed"] is not None]
    lines = "\n".join(f"{location(one['location'])} {one['severity']}: {one['message']}".lstrip() for one in counted)
    attributes = {"classname": path, "name": rule}
    if found[0]["location"]["line"] is not None:
        attributes |= {"file": path, "line": str(found[0]["location"]["line"])}
    if not counted:
        reason = "; ".join(f"{one['kind']}: {one['reason']}" for one in suppressed)
        return _element("testcase", attributes, _element("skipped", {"message": reason}, ""))
    gravest = max(counted, key=lambda one: _RANKS[one["severity"]])
    if _RANKS[gravest["severity"]] >= threshold:
        inner = _element("failure", {"type": gravest["severity"], "message": gravest["message"]}, _text(lines))
    else:
        inner = _element("system-out", {}, _text(lines))
    return _element("testcase", attributes, inner)


def _totals(cases: Sequence[str]) -> dict[str, str]:
    marks = {"failures": "<failure ", "errors": "<error ", "skipped": "<skipped "}
    return {"tests": str(len(cases))} | {name: str(sum(mark in case for case in cases)) for name, mark in marks.items()}


def _element(name: str, attributes: dict[str, str], inner: str) -> str:
    words = "".join(f" {key}={quoteattr(_valid(value))}" for key, value in attributes.items())
    return f"<{name}{words}>{inner}</{name}>" if inner else f"<{name}{words}/>"


def _text(text: str) -> str:
    return escape(_valid(text))


def _valid(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


FORMAT = ReportFormat("junit", render)
