"""A picture of a report: what it shows in words, the numbers behind it, and how to draw it.

HTML draws it, Markdown prints its table, text its sparklines. A picture without data says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.discover import discover
from rlaudit.report.rendering import pictures
from rlaudit.report.rendering.outline import PARTS_WITH_OUTLINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

# In CSS pixels: the width of a telephone without margins, and the whole width of a page.
NARROW, WIDE = 380, 760
WEIGHT_UPDATES, CANARY, RELEASES = "weight_updates", "canary", "releases"


def subject_of(report: "Report") -> str:
    """Return which pictures a report has: those of the part that it is about, or of its command."""
    if "trainings" in report and "comparisons" in report:
        # A diagnosis of recordings has the tokens of a comparison.
        return "compare"
    # A bump is an inspection, and a log that is held against gates has no picture.
    parts = (part for part in PARTS_WITH_OUTLINES if part in report and part != "bump")
    return next(parts, report["command"])


@dataclass(frozen=True)
class Table:
    """The numbers of a picture as cells. The first cell of a row names it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Sparkline:
    """One line of a picture on a terminal."""

    name: str
    values: Sequence[float | None]  # None is a gap
    ends: str  # what the line begins and ends with, in words


@dataclass(frozen=True)
class Picture:
    """One picture."""

    name: str  # short, of letters and hyphens, unique in a report
    title: str
    caption: str  # what is drawn and how to read it
    table: Table
    height: int  # in CSS pixels, as is `width`
    draw: Callable[["Figure"], None]  # draws into an empty matplotlib figure
    sparklines: Sequence[Sparkline] = ()
    group: str = ""  # what it is about, such as a block of arms; empty if a report has only one group
    width: int = NARROW

    @property
    def full_title(self) -> str:
        """Return the title with the group, for pictures of several groups side by side."""
        return f"{self.title}: {self.group}" if self.group else self.title


@dataclass(frozen=True)
class Missing:
    """A picture that cannot be drawn, and why."""

    title: str
    reason: str


@dataclass(frozen=True)
class PictureKind:
    """One kind of picture."""

    name: str
    place: int  # kinds are drawn in the order of their places
    subjects: frozenset[str]  # which reports have it, each as `subject_of` names it
    of: Callable[["Report"], Sequence[Picture | Missing]]  # the pictures of a report, or why there are none


def pictures_of(report: "Report") -> tuple[Sequence[Picture], Sequence[Missing]]:
    """Return the pictures that can be drawn, and why others cannot."""
    kinds = sorted(discover(pictures, "PICTURES", PictureKind).values(), key=lambda kind: kind.place)
    subject = subject_of(report)
    made = [picture for kind in kinds if subject in kind.subjects for picture in kind.of(report)]
    return (
        [picture for picture in made if isinstance(picture, Picture)],
        [picture for picture in made if isinstance(picture, Missing)],
    )
