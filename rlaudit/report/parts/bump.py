"""What a bump of vLLM is: the pins that move between two trees of a repository, and what the move takes away."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from rlaudit.report.parts.inspection import Location

PinMove = TypedDict(
    "PinMove", {"path": str, "line": int, "kind": str, "from": str | None, "to": str | None, "moves": bool}
)
"""A pin as each tree has it, null where it has none. line: in the tree after, or before where the file is gone.
moves: whether both sides tell a release.
"""


class GoneName(TypedDict):
    """A name that the new release does not take. kind: argument, flag, variable, sampling parameter or method.

    found: where the word stands in the repository, whatever it means there.
    """

    kind: str
    name: str
    effect: str
    instead: str
    found: Sequence[Location]


class Bump(TypedDict):
    """base, head: the two trees as they were named. pin_files: how many files with pins were looked at. standing: how
    many findings the configs have at the old release already; they are not in the report.
    """

    base: str
    head: str
    moves: Sequence[PinMove]
    said: Sequence[str]
    pin_files: int
    gone: Sequence[GoneName]
    standing: int
