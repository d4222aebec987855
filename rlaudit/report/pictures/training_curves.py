"""Training curves of two runs with the reference's noise band, and the step from which they are separate."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.report.drawing.axes import SMALL, key, name_axes, plot
from rlaudit.report.drawing.styles import BAND, CANDIDATE, INK, MUTED, REFERENCE
from rlaudit.report.figures import number
from rlaudit.report.parts.curves import CurveMetric
from rlaudit.report.picture import Missing, Picture, PictureKind, Sparkline, Table
from rlaudit.report.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Training curves"
CAPTION = "Shaded: the reference's noise band. "
HEIGHT = 240


def pictures(document: Report) -> Sequence[Picture | Missing]:
    """One for each metric that was compared, what separated first."""
    drawn = [metric for metric in document["curves"]["metrics"] if metric["points"]]
    return [_picture(place, metric) for place, metric in enumerate(drawn)] or [
        Missing(TITLE, "no metric could be compared")
    ]


def _picture(place: int, metric: CurveMetric) -> Picture:
    points = metric["points"]
    rows = [
        [str(at["step"]), *map(number, (at["reference"], at["candidate"], at.get("low"), at.get("high")))]
        for at in points
    ]
    steps = f"step {points[0]['step']} to {points[-1]['step']}"
    return Picture(
        f"curve-{place}",
        metric["name"],
        CAPTION + _said(metric),
        Table(["step", "reference", "candidate", "band from", "to"], rows),
        HEIGHT,
        lambda figure: _draw(figure, metric),
        [
            Sparkline(f"{metric['name']}, reference", [at["reference"] for at in points], steps),
            Sparkline(f"{metric['name']}, candidate", [at["candidate"] for at in points], steps),
        ],
    )


def _said(metric: CurveMetric) -> str:
    if metric["outcome"] != "separated":
        return f"Not separated: {metric['because']}."
    return f"Separated at step {metric['detected_step']}, which begins about step {metric['onset_step']}."


def _draw(figure: "Figure", metric: CurveMetric) -> None:
    from matplotlib.ticker import MaxNLocator

    axes = plot(figure, left=52)
    points = metric["points"]
    steps = [at["step"] for at in points]
    banded = [at for at in points if "low" in at and "high" in at]
    axes.fill_between([at["step"] for at in banded], [at["low"] for at in banded], [at["high"] for at in banded],
                      color=BAND, linewidth=0)  # fmt: skip
    reference = axes.plot(steps, [at["reference"] for at in points], color=REFERENCE, linewidth=1.4,
                          linestyle=(0, (5, 2)))  # fmt: skip
    candidate = axes.plot(steps, [at["candidate"] for at in points], color=CANDIDATE, linewidth=1.6)
    onset, detected = metric["onset_step"], metric["detected_step"]
    if onset is not None:
        axes.axvline(onset, color=MUTED, linewidth=1, linestyle=(0, (2, 2)))
    if detected is not None:
        axes.axvline(detected, color=INK, linewidth=1)
        left = detected > (steps[0] + steps[-1]) / 2
        axes.annotate(f"separated at {detected}", (detected, 0.02), fontsize=SMALL,
                      xycoords=("data", "axes fraction"), xytext=(-5 if left else 5, 0), textcoords="offset points",
                      ha="right" if left else "left", va="bottom", color=INK)  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
    name_axes(axes, "step")
    key(axes, [("reference", reference[0]), ("candidate", candidate[0])])


PICTURES = PictureKind("training-curves", 90, frozenset({"curves"}), pictures)
