"""The six curves of a canary: every arm's mean over its seeds, and the reference's seeds as a band."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.report.drawing.axes import key, name_axes, plot, room_for_key
from rlaudit.report.drawing.styles import BAND, CANDIDATE, OTHER, PARITY, REFERENCE
from rlaudit.report.figures import number
from rlaudit.report.parts.canary import CanaryFigure
from rlaudit.report.picture import CANARY, Missing, Picture, PictureKind, Sparkline, Table
from rlaudit.report.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Training curves"
CAPTION = "Mean over the seeds of each arm; shaded: from the lowest to the highest seed of the reference."
HEIGHT = 220
# Of the key, in which two arms share a row.
ROW = 15
# Where a table has no room for every step.
KEPT_ROWS = 12
COLOURS = (CANDIDATE, PARITY, OTHER)
DASHES = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)))


def pictures(document: Report) -> Sequence[Picture | Missing]:
    """One for each curve of the write-up."""
    drawn = [figure for figure in document["canary"]["figures"] if figure["curves"]]
    return [_picture(place, figure) for place, figure in enumerate(drawn)] or [Missing(TITLE, "no training ended")]


def _picture(place: int, figure: CanaryFigure) -> Picture:
    curves = figure["curves"]
    steps = curves[0]["steps"]
    every = -(-len(steps) // KEPT_ROWS)
    rows = [[str(steps[at]), *(number(curve["mean"][at]) for curve in curves)] for at in range(0, len(steps), every)]
    ends = f"step {steps[0]} to {steps[-1]}"
    return Picture(
        f"canary-{place}",
        figure["title"],
        CAPTION,
        Table(["step", *(curve["arm"] for curve in curves)], rows),
        HEIGHT + ROW * len(curves) // 2,
        lambda canvas: _draw(canvas, figure),
        [Sparkline(curve["arm"], list(curve["mean"]), ends) for curve in curves],
    )


def _draw(canvas: "Figure", figure: CanaryFigure) -> None:
    from matplotlib.ticker import MaxNLocator

    reference, *others = figure["curves"]
    axes = plot(canvas, left=58, top=room_for_key([curve["arm"] for curve in figure["curves"]]))
    axes.fill_between(reference["steps"], reference["low"], reference["high"], color=BAND, linewidth=0)
    lines = [
        axes.plot(
            curve["steps"], curve["mean"], color=COLOURS[place % len(COLOURS)],
            linestyle=DASHES[place // len(COLOURS) % len(DASHES)], linewidth=1.4,
        )[0]
        for place, curve in enumerate(others)
    ]  # fmt: skip
    lines.insert(0, axes.plot(reference["steps"], reference["mean"], color=REFERENCE, linewidth=1.8)[0])
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlim(reference["steps"][0], reference["steps"][-1])
    name_axes(axes, "step")
    key(axes, [(curve["arm"], line) for curve, line in zip(figure["curves"], lines, strict=True)])


PICTURES = PictureKind("canary", 90, frozenset({CANARY}), pictures)
