"""What a diagnosis read."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Source:
    """A report that a diagnosis read."""

    path: str
    command: str
    exit_code: int
