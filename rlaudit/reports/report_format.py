"""What an output format is: a name and a function from the document to text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True)
class ReportFormat:
    """One format. `render` gets the document and the width of the terminal (None when piped or written to a file)."""

    name: str
    render: Callable[[Document, int | None], str]
