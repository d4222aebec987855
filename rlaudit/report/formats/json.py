"""JSON: the document itself, schema rlaudit-report/1."""

import json

from rlaudit.report.report_format import Document, ReportFormat


def render(document: Document, width: int | None) -> str:
    """The whole document; numbers that do not exist are null, never NaN."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


FORMAT = ReportFormat("json", render, for_programs=True)
