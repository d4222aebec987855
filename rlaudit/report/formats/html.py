"""HTML: one file with pictures and without scripts, to read, to print and to attach."""

from rlaudit.report.report_format import Document, ReportFormat


def render(document: Document, width: int | None) -> str:
    """The page. Nothing in it is loaded from elsewhere."""
    # Drawing takes a second to import, which no other format should wait for.
    from rlaudit.report.html.page import page

    return page(document)


FORMAT = ReportFormat("html", render)
