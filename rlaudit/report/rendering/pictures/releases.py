"""At which releases a property moves: a row for each property, a field for each release, a colour for each value."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlaudit.report.rendering.drawing.axes import plot, set_ticks
from rlaudit.report.rendering.drawing.styles import CANDIDATE, INK, MUTED, OTHER, PAPER, PARITY, REFERENCE
from rlaudit.report.rendering.picture import RELEASES, WIDE, Missing, Picture, PictureKind, Table
from rlaudit.report.rendering.release_spans import ReleaseSpan, spans_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

TITLE = "What moves, release by release"
CAPTION = (
    "A field for each release, a colour for each value of the property. Where the colour changes, the word is another, "
    "or the figure's interval lies apart from that of the first release of its colour. Empty: no figure."
)
COLOURS = (REFERENCE, CANDIDATE, PARITY, OTHER, MUTED, INK)
ROW, FRAME = 20, 110
# Pixels that a letter of a label takes, and the room beside it.
LETTER, ROOM = 5.4, 14


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return the picture of all properties that move."""
    releases = report["releases"]
    moving = {title: spans for title, spans in spans_of(releases).items() if len(spans) > 1}
    if not moving:
        return [Missing(TITLE, "no property has two values")]
    versions = [release.version for release in releases.measured]
    rows = [
        ["" if index else title, span.releases, span.value, span.cell.why or ""]
        for title, spans in moving.items()
        for index, span in enumerate(spans)
    ]
    return [
        Picture(
            "releases",
            TITLE,
            CAPTION,
            Table(["property", "vLLM", "value", "why, by the sources of the first release"], rows),
            FRAME + ROW * len(moving),
            lambda figure: _draw(figure, versions, moving),
            width=WIDE,
        )
    ]


def _draw(figure: "Figure", versions: Sequence[str], moving: Mapping[str, Sequence[ReleaseSpan]]) -> None:
    axes = plot(figure, left=round(LETTER * max(map(len, moving)) + ROOM), bottom=FRAME - 40)
    axes.grid(visible=False)
    for row, spans in enumerate(moving.values()):
        for span, colour in zip(spans, colours(spans), strict=True):
            across = [versions.index(version) for version in span.versions]
            axes.bar(across, [0.8] * len(across), 0.9, [row - 0.4] * len(across), color=colour, edgecolor=PAPER)
    axes.set_ylim(len(moving) - 0.4, -0.6)
    axes.set_xlim(-0.6, len(versions) - 0.4)
    set_ticks(axes.yaxis, [float(row) for row in range(len(moving))], list(moving))
    set_ticks(axes.xaxis, [float(index) for index in range(len(versions))], list(versions))
    axes.tick_params(axis="x", rotation=90, labelcolor=INK)


def colours(spans: Sequence[ReleaseSpan]) -> list[str]:
    """Return the colour of each span: one for each value, so that a word that comes back has its first colour again."""
    numbers: dict[str, int] = {}
    return [COLOURS[numbers.setdefault(span.value, len(numbers)) % len(COLOURS)] for span in spans]


PICTURES = PictureKind("releases", 5, frozenset({RELEASES}), pictures)
