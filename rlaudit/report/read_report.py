"""Read a report that any release of rlaudit wrote, and say what is wrong if it cannot be rendered.

Fields are added within a schema version and never removed, so that reports of older releases are read as they are, and
of newer ones of the same version everything that is known here. Numbers that no JSON has (NaN, infinity) are refused.
"""

import json
import re
from math import isfinite
from pathlib import Path
from typing import Any, cast

import rlaudit
from rlaudit.errors import UsageError
from rlaudit.printable import one_line, printable
from rlaudit.report.report import Report
from rlaudit.report.schema import report_schema

VERSION = 1
_SCHEMA = re.compile(r"rlaudit-report/(\d{1,9})")
LONGEST = 200


def read_report(path: Path) -> Report:
    """Read and check a report. Raises UsageError for what is no report, or one of a newer schema."""
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_number, parse_float=_number)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a report: {one_line(printable(str(error)))[:LONGEST]}") from error
    named = document.get("schema") if isinstance(document, dict) else None
    version = _SCHEMA.fullmatch(named) if isinstance(named, str) else None
    if version is None or not isinstance(document, dict):
        raise UsageError(f"{path} is not a report of rlaudit", f"expected a schema rlaudit-report/{VERSION}")
    if int(version[1]) > VERSION:
        raise UsageError(
            f"{path} is of schema {named}, written by rlaudit {_writer(document)}; "
            f"this is rlaudit {rlaudit.__version__}, which reads rlaudit-report/{VERSION}",
            "upgrade rlaudit, or render the report where it was written",
        )
    _check(path, document)
    return cast(Report, document)


def _writer(document: dict[str, Any]) -> str:
    return one_line(printable(str(document.get("rlaudit"))))[:40]


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is no number of JSON")
    return value


def _check(path: Path, document: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    try:
        wrong = best_match(Draft202012Validator(_open(report_schema())).iter_errors(document))
    except RecursionError as error:
        raise UsageError(f"{path} is not a report: it is nested too deeply") from error
    if wrong is not None:
        said = one_line(printable(wrong.message))
        raise UsageError(
            f"{path} does not follow schema rlaudit-report/{VERSION}: {wrong.json_path}: {said[:LONGEST]}",
            f"it says that rlaudit {_writer(document)} wrote it; was it edited, or cut off?",
        )


def _open(schema: Any) -> Any:
    """Return the schema, with fields allowed that a newer release added."""
    if isinstance(schema, dict):
        return {key: _open(value) for key, value in schema.items() if (key, value) != ("additionalProperties", False)}
    return [_open(one) for one in schema] if isinstance(schema, list) else schema
