"""One line for each finding: `path:line:column: severity rule message`, as editors and grep like it."""

from typing import TYPE_CHECKING

from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.report.rendering.statements import counted, location, message_of
from rlaudit.text.printable import one_line, printable

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def render(report: "Report", width: int | None) -> str:
    """Return the findings that count and no summary, so that every line is a finding."""
    lines = []
    for finding in printable(counted(report)):
        place = location(finding.location)
        lines.append(
            one_line(f"{place + ': ' if place else ''}{finding.severity} {finding.rule} {message_of(finding)}")
        )
    return "".join(f"{line}\n" for line in lines)


FORMAT = ReportFormat("concise", render)
