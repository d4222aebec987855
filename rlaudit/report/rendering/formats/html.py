"""HTML: one file with pictures and without scripts, to read, to print and to attach."""

from typing import TYPE_CHECKING

from rlaudit.report.rendering.report_format import ReportFormat

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def render(report: "Report", width: int | None) -> str:
    """Return the page, which loads nothing from elsewhere."""
    # Drawing takes a second to import, which no other format should wait for.
    from rlaudit.report.rendering.html.page import page

    return page(report)


FORMAT = ReportFormat("html", render, markup=True)
