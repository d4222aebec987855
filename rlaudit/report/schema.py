"""The published JSON schema of a report, made from its types: `rlaudit list schema` prints it."""

from functools import cache
from typing import Any

from rlaudit.report.new_report import SCHEMA

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def report_schema() -> dict[str, Any]:
    """JSON-able. Takes a moment: pydantic is imported for it."""
    from pydantic import TypeAdapter

    from rlaudit.report.report import ABOUT, Report

    made = TypeAdapter(Report).json_schema()
    closed: dict[str, Any] = _closed(made)
    complete = [
        {"if": {"properties": {"command": {"const": command}}}, "then": {"required": [part]}}
        for command, part in ABOUT.items()
    ]
    return {"$schema": DIALECT, **closed, "allOf": complete, "title": SCHEMA}


def _closed(schema: Any) -> Any:
    """Return the schema with no field allowed but those it names, and without the titles that repeat their names."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: _closed(one) for name, one in value.items()} if key in {"properties", "$defs"} else _closed(value)
        for key, value in schema.items()
        if key != "title"
    }
    return kept | {"additionalProperties": False} if "properties" in kept else kept
