"""Text for people: what matters first, then what it rests on, then what was not seen.

On a terminal, coloured and wrapped to its width. Piped, the same lines in full: nothing is cut to a width nobody has.
"""

from rlaudit.reports.report_format import Document, ReportFormat


def render(document: Document, width: int | None) -> str:
    """The report as text; ANSI colours only for a terminal (`width` given)."""
    # The tables of an ablation take longer to import than an inspection takes to run.
    if document["command"] == "inspect":
        from rlaudit.reports.inspection_text import render as render_inspection

        return render_inspection(document, width)
    if document["command"] in {"compare", "diagnose"}:
        from rlaudit.reports.comparison_text import render as render_comparison

        return render_comparison(document, width)
    if document["command"] == "curves":
        from rlaudit.reports.curves_text import render as render_curves

        return render_curves(document, width)
    from rlaudit.reports.ablation_text import render as render_ablation

    return render_ablation(document, width)


FORMAT = ReportFormat("text", render)
