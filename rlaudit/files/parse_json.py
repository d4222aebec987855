"""JSON that may come from anywhere: a document that is nested too deeply is no JSON, and not a bug of the reader."""

import json
from typing import Any


def parse_json(text: str | bytes | bytearray) -> Any:
    """Return the value of a JSON document. Raises ValueError for anything else, and for one nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
