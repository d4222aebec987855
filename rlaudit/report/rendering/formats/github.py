"""Annotations of GitHub Actions: workflow commands that put each finding beside its line.

Escaped is what the runner unescapes: `%`, carriage return and line feed everywhere, `:` and `,` in properties as well.
"""

from typing import TYPE_CHECKING

from rlaudit.report.rendering.markdown_escaped import inert
from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.report.rendering.statements import counted, message_of
from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: "Report", width: int | None) -> str:
    """Return a command for each finding that counts, and one for what could not be read."""
    lines = [_annotation(finding) for finding in counted(report)]
    inspected = report.get("inspection")
    lines += [
        f"::error file={_property(file.path)},title=rlaudit%3A not read::{_data(file.reason)}"
        for file in (inspected.unread if inspected else ())
        if file.wanted
    ]
    lines += [f"::error title=rlaudit failed::{_data(bug)}" for bug in (inspected.bugs if inspected else ())]
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: "Finding") -> str:
    place = finding.location
    properties = {
        "file": place.path,
        "line": place.line,
        "col": place.column,
        "title": f"rlaudit: {finding.rule}",
    }
    words = [f"{name}={_property(str(value))}" for name, value in properties.items() if value is not None]
    message = message_of(finding)
    message += "" if finding.fix is None else f"\nFix: {finding.fix.description}"
    return f"::{COMMANDS[finding.severity]} {','.join(words)}::{_data(inert(message))}"


def _data(text: str) -> str:
    text = printable(text.replace("\r", "\n"))
    return text.replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMAT = ReportFormat("github", render, for_programs=True)
