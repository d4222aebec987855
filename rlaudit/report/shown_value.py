"""A value of a setting, for people."""

import json
from typing import Any


def shown(value: Any) -> str:
    """Return a value as a config would spell it, or say that it is unknown."""
    if isinstance(value, dict) and len(value) == 1:
        if "unknown" in value:
            return f"unknown: {value['unknown']}"
        if "absent" in value:
            return "no such argument"
    if isinstance(value, str):
        return value if value.strip() else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)
