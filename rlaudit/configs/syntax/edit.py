"""A change of one span of a file that leaves every other byte as it is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replace text[start:end] of `path` by `replacement`; start == end inserts."""

    path: str
    start: int
    end: int
    replacement: str
