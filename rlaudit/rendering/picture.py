"""What a picture of a report is: what it shows in words, the numbers behind it, and how to draw it.

HTML draws it, Markdown prints its table, text its sparklines. A picture that has no data says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.discover import discover
from rlaudit.rendering import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

# CSS pixels: what a telephone has between its margins, and what a page has beside nothing else.
NARROW, WIDE = 380, 760
WEIGHT_UPDATES = "weight updates"
CANARY = "canary"
RECORDING = "recording"
RELEASES = "releases"
GATES = "gates"  # which has no picture


def subject_of(document: "Report") -> str:
    """Whose pictures a report has: its command's, or those of the kind of ablation that it is."""
    if "weight_updates" in document:
        return WEIGHT_UPDATES
    if "releases" in document:
        return RELEASES
    if "gates" in document:
        return GATES
    if "public_recording" in document:
        return RECORDING
    if "trainings" in document and "comparisons" in document:
        # A diagnosis of recordings has the tokens of a comparison.
        return "compare"
    return CANARY if "canary" in document else document["command"]


@dataclass(frozen=True)
class Table:
    """The numbers of a picture, as cells to read and to copy. The first cell of a row names it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Sparkline:
    """One line of a picture on a terminal; None is a gap. `ends`: what the line begins and ends with, in words."""

    name: str
    values: Sequence[float | None]
    ends: str


@dataclass(frozen=True)
class Picture:
    """One picture.

    name: short, of letters and hyphens, unique in a report. group: what it is about, such as a block of arms; empty if
    a report has one. caption: what is drawn and how to read it.
    draw: draws into an empty matplotlib figure that is `height` CSS pixels high, and `width` wide.
    """

    name: str
    title: str
    caption: str
    table: Table
    height: int
    draw: Callable[["Figure"], None]
    sparklines: Sequence[Sparkline] = ()
    group: str = ""
    width: int = NARROW

    @property
    def full_title(self) -> str:
        """With its group, for places where pictures of several groups stand side by side."""
        return f"{self.title}: {self.group}" if self.group else self.title


@dataclass(frozen=True)
class Missing:
    """A picture that cannot be drawn, and why, in one line."""

    title: str
    reason: str


@dataclass(frozen=True)
class PictureKind:
    """One kind of picture. `place`: where it stands among the others.

    subjects: whose reports have it: names of commands, and WEIGHT_UPDATES, CANARY and RELEASES, which are
    other ablations, and RECORDING, which an inspection makes public.

    of: the pictures of one document, or why there are none.
    """

    name: str
    place: int
    subjects: frozenset[str]
    of: Callable[["Report"], Sequence[Picture | Missing]]


def pictures_of(document: "Report") -> tuple[Sequence[Picture], Sequence[Missing]]:
    """Return what can be drawn, and what cannot be and why."""
    kinds = sorted(discover(pictures, "PICTURES", PictureKind).values(), key=lambda kind: kind.place)
    subject = subject_of(document)
    found = [one for kind in kinds if subject in kind.subjects for one in kind.of(document)]
    return (
        [one for one in found if isinstance(one, Picture)],
        [one for one in found if isinstance(one, Missing)],
    )
