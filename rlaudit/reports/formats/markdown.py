"""Markdown, for pull requests and step summaries."""

from rlaudit.reports.report_format import Document, ReportFormat


def render(document: Document, width: int | None) -> str:
    """The same parts as the text report."""
    if document["command"] == "inspect":
        from rlaudit.reports.inspection_markdown import render as render_inspection

        return render_inspection(document)
    if document["command"] in {"compare", "diagnose"}:
        from rlaudit.reports.comparison_markdown import render as render_comparison

        return render_comparison(document)
    if document["command"] == "curves":
        from rlaudit.reports.curves_markdown import render as render_curves

        return render_curves(document, width)
    from rlaudit.reports.ablation_markdown import render as render_ablation

    return render_ablation(document)


FORMAT = ReportFormat("markdown", render)
