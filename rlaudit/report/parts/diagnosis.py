"""What every command that judges says of the three layers, and which reports a diagnosis read."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from rlaudit.layers import Layer, Verdict


class Judged(TypedDict):
    """What is said of one layer. cause: for people; causes: each by itself, none where a mismatch is unexplained."""

    layer: Layer
    verdict: Verdict
    cause: str | None
    causes: Sequence[str]
    because: str
    evidence: Sequence[str]
    falsifier: str
    next: str


class Source(TypedDict):
    """A report that a diagnosis read."""

    path: str
    command: str
    exit_code: int
