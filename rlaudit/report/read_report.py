"""Read a report that any release of rlaudit wrote, and say what is wrong if it cannot be rendered.

Fields are added within a schema version and never removed. So an older report is read as it is, and a newer one of the
same version without the fields that are unknown here. Numbers that JSON does not have (NaN, infinity) are refused.
"""

import json
import re
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

import rlaudit
from rlaudit.errors import UsageError
from rlaudit.report.schema import report_type
from rlaudit.text.printable import one_line, printable

if TYPE_CHECKING:
    from rlaudit.report.report import Report

VERSION = 1
_SCHEMA = re.compile(r"rlaudit-report/(\d{1,9})")
LONGEST = 200


def read_report(path: Path) -> "Report":
    """Read and check a report. Raises UsageError if it is no report, or one of a newer schema."""
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_number, parse_float=_number)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a report: {one_line(printable(str(error)))[:LONGEST]}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    version = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if version is None or not isinstance(document, dict):
        raise UsageError(f"{path} is not a report of rlaudit", f"expected a schema rlaudit-report/{VERSION}")
    if int(version[1]) > VERSION:
        raise UsageError(
            f"{path} is of schema {schema}, written by rlaudit {_writer(document)}; "
            f"this is rlaudit {rlaudit.__version__}, which reads rlaudit-report/{VERSION}",
            "upgrade rlaudit, or render the report where it was written",
        )
    try:
        return report_type().validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
        raise UsageError(
            f"{path} does not follow schema rlaudit-report/{VERSION}: ${one_line(printable(place))[:LONGEST]}: "
            f"{one_line(printable(first['msg']))[:LONGEST]}",
            f"it says that rlaudit {_writer(document)} wrote it; was it edited, or cut off?",
        ) from error


def _writer(document: dict[str, Any]) -> str:
    return one_line(printable(str(document.get("rlaudit"))))[:40]


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is no number of JSON")
    return value
