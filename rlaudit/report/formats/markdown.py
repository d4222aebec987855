"""Markdown, for pull requests and step summaries."""

from rlaudit.report.report_format import Document, ReportFormat


def render(document: Document, width: int | None) -> str:
    """The same parts as the text report, then the pictures as tables."""
    if document["command"] == "inspect":
        from rlaudit.report.inspection_markdown import render as render_inspection

        return render_inspection(document)
    from rlaudit.report.pictures_markdown import render as render_pictures

    return "\n".join(part for part in (_told(document, width), render_pictures(document)) if part)


def _told(document: Document, width: int | None) -> str:
    if document["command"] in {"compare", "diagnose"}:
        from rlaudit.report.comparison_markdown import render as render_comparison

        return render_comparison(document)
    if document["command"] == "curves":
        from rlaudit.report.curves_markdown import render as render_curves

        return render_curves(document, width)
    if document["command"] == "selftest":
        from rlaudit.report.selftest_markdown import render as render_selftest

        return render_selftest(document)
    if "weight_updates" in document:
        from rlaudit.report.weight_updates_markdown import render as render_weight_updates

        return render_weight_updates(document)
    from rlaudit.report.ablation_markdown import render as render_ablation

    return render_ablation(document)


FORMAT = ReportFormat("markdown", render)
