"""What a bump of vLLM is: the pins that move between two trees of a repository, and what the move takes away."""

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from rlaudit.report.parts.inspection import Location

PinMove = TypedDict(
    "PinMove", {"path": str, "line": int, "kind": str, "from": str | None, "to": str | None, "moves": bool}
)
"""A pin as each tree has it, null where it has none. line: in the tree after, or before where the file is gone.
moves: whether both sides tell a release.
"""


class GoneName(TypedDict):
    """A name that the new release does not take. kind: argument, flag, variable, sampling parameter, method or import.

    found: where the word stands in the repository, whatever it means there.
    """

    kind: str
    name: str
    effect: str
    instead: str
    found: Sequence[Location]


class NewRoute(TypedDict):
    """A route of the new release's server. found: where its path stands in the repository."""

    path: str
    since: str
    found: Sequence[Location]


class CrossedDefect(TypedDict):
    """A known defect of either release. move: entered where only the new release has it, left where only the old.

    certain, open: how many configs have all that must come together, and of how many that cannot be told. undecided:
    what cannot be told, as clauses.
    """

    name: str
    says: str
    window: str
    move: Literal["entered", "left", "still open"]
    way_out: str
    certain: int
    open: int
    undecided: Sequence[str]


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
    new_routes: Sequence[NewRoute]
    advisories: Sequence[CrossedDefect]
    standing: int
