"""The published JSON schema of a report, made from its types: `rlaudit list schema` prints it."""

from functools import cache
from typing import TYPE_CHECKING, Any

from rlaudit.report.new_report import SCHEMA

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from rlaudit.report.report import Report

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# It names the schema and is no address: the file is what `rlaudit list schema` prints.
ID = f"urn:rlaudit:{SCHEMA.replace('/', ':')}"


@cache
def report_type() -> "TypeAdapter[Report]":
    """Return the adapter that checks a report and makes its records. Importing pydantic for it takes a moment."""
    from pydantic import TypeAdapter

    from rlaudit.report.report import Report

    return TypeAdapter(Report)


@cache
def report_schema(closed: bool = False) -> dict[str, Any]:
    """Return the schema as JSON data. closed: without room for the fields that later releases may add."""
    from rlaudit.report.report import ABOUT

    plain: dict[str, Any] = _plain(report_type().json_schema(), closed)
    complete = [
        {
            "if": {"properties": {"command": {"const": command}}},
            "then": {"anyOf": [{"required": [part]} for part in parts]},
        }
        for command, parts in ABOUT.items()
    ]
    return {"$schema": DIALECT, "$id": ID, **plain, "allOf": complete, "title": SCHEMA}


def _plain(schema: Any, closed: bool) -> Any:
    """Return the schema without titles, which repeat the names of fields.

    A field is required unless its default is None: others are always written.
    """
    if isinstance(schema, list):
        return [_plain(item, closed) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: _plain(part, closed) for name, part in value.items()}
        if key in {"properties", "$defs"}
        else _plain(value, closed)
        for key, value in schema.items()
        if key not in {"title", "default"}
    }
    if "properties" not in kept:
        return kept
    defaulted = [name for name, field in schema["properties"].items() if field.get("default") is not None]
    required = [*kept.get("required", ()), *defaulted]
    return kept | ({"required": required} if required else {}) | ({"additionalProperties": False} if closed else {})
