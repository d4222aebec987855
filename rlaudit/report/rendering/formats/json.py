"""JSON: the report itself, schema rlaudit-report/1."""

import json
from typing import TYPE_CHECKING

from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.text.plain import plain

if TYPE_CHECKING:
    from rlaudit.report.report import Report


def render(report: "Report", width: int | None) -> str:
    """Return the whole report; missing numbers are null, never NaN."""
    return json.dumps(plain(report), indent=1, allow_nan=False) + "\n"


FORMAT = ReportFormat("json", render, for_programs=True)
