"""The published JSON schema of a report, made from its types: `rlaudit list schema` prints it."""

from functools import cache
from typing import TYPE_CHECKING, Any

from rlaudit.report.new_report import SCHEMA

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from rlaudit.report.report import Report

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def report_type() -> "TypeAdapter[Report]":
    """Return the adapter that checks a report and makes its records. Importing pydantic for it takes a moment."""
    from pydantic import TypeAdapter

    from rlaudit.report.report import Report

    return TypeAdapter(Report)


@cache
def report_schema() -> dict[str, Any]:
    """Return the schema as JSON data."""
    from rlaudit.report.report import ABOUT

    closed: dict[str, Any] = _closed(report_type().json_schema())
    complete = [
        {
            "if": {"properties": {"command": {"const": command}}},
            "then": {"anyOf": [{"required": [part]} for part in parts]},
        }
        for command, parts in ABOUT.items()
    ]
    return {"$schema": DIALECT, **closed, "allOf": complete, "title": SCHEMA}


def _closed(schema: Any) -> Any:
    """Return the schema without titles, which repeat the names of fields, and with no other fields allowed.

    A field is required unless its default is None: others are always written.
    """
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: _closed(part) for name, part in value.items()} if key in {"properties", "$defs"} else _closed(value)
        for key, value in schema.items()
        if key not in {"title", "default"}
    }
    if "properties" not in kept:
        return kept
    defaulted = [name for name, field in schema["properties"].items() if field.get("default") is not None]
    required = [*kept.get("required", ()), *defaulted]
    return kept | ({"required": required} if required else {}) | {"additionalProperties": False}
