"""Text for people: what matters first, then what it rests on, then what was not seen.

On a terminal, coloured and wrapped to its width. Piped, the same lines in full: nothing is cut to a width nobody has.
"""

import sys

from rlaudit.report.report_format import Document, ReportFormat
from rlaudit.report.sparkline import encodable


def render(document: Document, width: int | None) -> str:
    """The report as text; ANSI colours only for a terminal (`width` given), blocks only where they can be written."""
    # The tables of an ablation take longer to import than an inspection takes to run.
    if document["command"] == "inspect":
        from rlaudit.report.inspection_text import render as render_inspection

        return render_inspection(document, width)
    return _told(document, width) + _pictures(document, width) + _closing(document, width)


def _told(document: Document, width: int | None) -> str:
    if document["command"] in {"compare", "diagnose"}:
        from rlaudit.report.comparison_text import render as render_comparison

        return render_comparison(document, width)
    if document["command"] == "curves":
        from rlaudit.report.curves_text import render as render_curves

        return render_curves(document, width)
    if document["command"] == "selftest":
        from rlaudit.report.selftest_text import render as render_selftest

        return render_selftest(document)
    if "weight_updates" in document:
        from rlaudit.report.weight_updates_text import render as render_weight_updates

        return render_weight_updates(document, width)
    from rlaudit.report.ablation_text import render as render_ablation

    return render_ablation(document, width)


def _pictures(document: Document, width: int | None) -> str:
    # An audit of weight updates ends with what was found, and has its lags as a table.
    if "weight_updates" in document or not encodable(sys.stdout.encoding):
        return ""
    from rlaudit.report.pictures_text import render as render_pictures

    return render_pictures(document, width)


def _closing(document: Document, width: int | None) -> str:
    if document["command"] != "ablate" or "weight_updates" in document:
        return ""
    from rlaudit.report.closing_text import render as render_closing

    return render_closing(document, width)


FORMAT = ReportFormat("text", render)
