"""What a bump of vLLM is: the pins that move between two trees of a repository, and the known defects it crosses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from typing_extensions import TypedDict

PinMove = TypedDict(
    "PinMove", {"path": str, "line": int, "kind": str, "from": str | None, "to": str | None, "moves": bool}
)
"""A pin as each tree has it, null where it has none. line: in the tree after, or before where the file is gone.
moves: whether both sides tell a release.
"""


@dataclass(frozen=True, kw_only=True)
class CrossedDefect:
    """A known defect of either release. move: entered if only the new release has it, left if only the old.

    certain, open: how many configs have all that must come together, and for how many that is unknown. undecided: what
    is unknown, as clauses.
    """

    name: str
    says: str
    window: str
    move: Literal["entered", "left", "still open"]
    way_out: str
    certain: int
    open: int
    undecided: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Bump:
    """A bump of vLLM. base, head: the two trees as they were named. pin_files: how many files with pins were looked at.
    standing: how many findings the configs have at the old release already; they are not in the report.
    """

    base: str
    head: str
    moves: Sequence[PinMove]
    said: Sequence[str]
    pin_files: int
    advisories: Sequence[CrossedDefect]
    standing: int
