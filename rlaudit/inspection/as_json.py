"""Values of settings as JSON: what is not known stays an object that says why."""

import math
from typing import Any

from rlaudit.configs.syntax.node import Node, Unknown


def as_json(value: Any) -> Any:
    """JSON data; Unknown becomes {"unknown": reason}, and what JSON has no word for its text."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, Node):
        return as_json(value.plain())
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(one) for one in value]
    return str(value)
