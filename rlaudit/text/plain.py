"""Records as JSON data."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any


def plain(value: Any) -> Any:
    """Return a record as JSON data, by `as_report` if it has one. A number that JSON lacks is null.

    A field that reports may lack has None as its default, and is left out if it is None.
    """
    if hasattr(value, "as_report"):
        value = value.as_report()
    elif is_dataclass(value):
        values = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: plain(part) for field, part in values if not (part is None and field.default is None)}
    elif hasattr(value, "item"):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
