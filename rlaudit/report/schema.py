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
    """Return what checks a report and makes its records. Takes a moment: pydantic is imported for it."""
    from pydantic import TypeAdapter

    from rlaudit.report.report import Report

    return TypeAdapter(Report)


@cache
def report_schema() -> dict[str, Any]:
    """JSON-able."""
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
    """Return the schema with no field allowed but those it names, and without the titles that repeat their names.

    A field is required unless its default is None: others are always written.
    """
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: _closed(one) for name, one in value.items()} if key in {"properties", "$defs"} else _closed(value)
        for key, value in schema.items()
        if key not in {"title", "default"}
    }
    if "properties" not in kept:
        return kept
    written = [name for name, one in schema["properties"].items() if one.get("default") is not None]
    required = [*kept.get("required", ()), *written]
    return kept | ({"required": required} if required else {}) | {"additionalProperties": False}
