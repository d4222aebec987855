"""One line for each finding: `path:line:column: severity rule message`, as editors and grep like it."""

from typing import TYPE_CHECKING

from rlaudit.printable import one_line, printable
from rlaudit.rendering.report_format import ReportFormat
from rlaudit.rendering.statements import counted, location

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def render(document: "Report", width: int | None) -> str:
    """Findings that count; the summary is not among them, so that every line is one."""
    lines = []
    for one in printable(counted(document)):
        where = location(one.location)
        lines.append(one_line(f"{where + ': ' if where else ''}{one.severity} {one.rule} {one.message}"))
    return "".join(f"{line}\n" for line in lines)


FORMAT = ReportFormat("concise", render)
