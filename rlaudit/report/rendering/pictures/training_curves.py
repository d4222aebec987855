"""Training curves of runs against their reference's noise band, and the steps at which they separate."""

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from rlaudit.curves.comparison import CurveMetric
from rlaudit.report.figures import number
from rlaudit.report.rendering.drawing.axes import SMALL, key, name_axes, plot, room_for_key
from rlaudit.report.rendering.drawing.styles import BAND, CANDIDATE, INK, MUTED, OTHER, PARITY, REFERENCE
from rlaudit.report.rendering.picture import CANARY, Missing, Picture, PictureKind, Sparkline, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

TITLE = "Training curves"
NOTHING = "no metric could be compared"
CAPTION = "Shaded: the reference's noise band"
HEIGHT = 240
# The height of a row of the key; two candidates share a row.
ROW = 15
COLOURS = (CANDIDATE, PARITY, OTHER)
DASHES = ("solid", (0, (1.5, 1.5)), (0, (6, 2, 1, 2)))
# A candidate's name and its curve.
Candidate = tuple[str, CurveMetric]


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return a picture for each metric that was compared, with all its candidates."""
    if "canary" in report:
        sides = [(arm.name, curves) for arm in report["canary"].arms if (curves := arm.curves)]
        reference = report["canary"].arms[0].name
    else:
        sides, reference = [("candidate", report["curves"])], "reference"
    drawn: dict[str, list[Candidate]] = {}
    for name, curves in sides:
        for metric in curves.metrics:
            if metric.points:
                drawn.setdefault(metric.name, []).append((name, metric))
    return [_picture(index, reference, candidates) for index, candidates in enumerate(drawn.values())] or [
        Missing(TITLE, NOTHING)
    ]


def _picture(index: int, reference: str, candidates: Sequence[Candidate]) -> Picture:
    first = _banded(candidates)[1]
    points = first.points
    names = [name for name, _ in candidates]
    # The title names the metric, so the lines of several candidates go without it.
    before = f"{first.name}, " if len(candidates) == 1 else ""
    drawn = [_values(metric) for _, metric in candidates]
    rows = [
        [
            str(point.step),
            number(point.reference),
            *(number(values.get(point.step)) for values in drawn),
            *map(number, (point.low, point.high)),
        ]
        for point in points
    ]
    steps = f"step {points[0].step} to {points[-1].step}"
    return Picture(
        f"curve-{index}",
        first.name,
        _caption(candidates),
        Table(["step", reference, *names, "band from", "to"], rows),
        HEIGHT + ROW * (len(candidates) // 2),
        lambda figure: _draw(figure, reference, candidates),
        [
            Sparkline(before + reference, [point.reference for point in points], steps),
            *(
                Sparkline(before + name, [point.candidate for point in metric.points], steps)
                for name, metric in candidates
            ),
        ],
    )


def _banded(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate whose band is drawn: the narrowest, since a noisier candidate widens its own band."""

    def width(candidate: Candidate) -> float:
        last = candidate[1].points[-1]
        return inf if last.low is None or last.high is None else last.high - last.low

    return min(candidates, key=width)


def _values(metric: CurveMetric) -> dict[int, float]:
    return {point.step: point.candidate for point in metric.points}


def _caption(candidates: Sequence[Candidate]) -> str:
    """Say what is shaded, and at which step each candidate separated."""
    name, first = _banded(candidates)
    if len(candidates) > 1:
        apart = [f"{arm} at step {metric.detected_step}" for arm, metric in candidates if metric.outcome == "separated"]
        shaded = (
            f"{CAPTION} for a candidate as noisy as {name}" if first.points[0].low is not None else "No noise, no band"
        )
        return f"{shaded}. Separated: {', '.join(apart) or 'none'}."
    if first.outcome != "separated":
        return f"{CAPTION}. Not separated: {first.because}."
    place = f"Separated at step {first.detected_step}, from about step {first.onset_step} on"
    if first.reference_level is None or first.candidate_level is None:
        return f"{CAPTION} of single steps. {place}."
    means = f"mean {number(first.candidate_level)} against {number(first.reference_level)} (thick)"
    return f"{CAPTION} of single steps. {place}: {means}."


def _draw(figure: "Figure", reference: str, candidates: Sequence[Candidate]) -> None:
    from matplotlib.ticker import MaxNLocator

    first = _banded(candidates)[1]
    names = [reference, *(name for name, _ in candidates)]
    axes = plot(figure, left=52) if len(candidates) == 1 else plot(figure, left=58, top=room_for_key(names))
    points = first.points
    steps = [point.step for point in points]
    band = [(point.step, point.low, point.high) for point in points if point.low is not None and point.high is not None]
    axes.fill_between([step for step, _, _ in band], [low for _, low, _ in band], [high for _, _, high in band],
                      color=BAND, linewidth=0)  # fmt: skip
    lines = axes.plot(
        steps, [point.reference for point in points], color=REFERENCE, linewidth=1.4, linestyle=(0, (5, 2))
    )
    for index, (_, metric) in enumerate(candidates):
        lines += axes.plot(
            [point.step for point in metric.points], [point.candidate for point in metric.points],
            color=COLOURS[index % len(COLOURS)], linestyle=DASHES[index // len(COLOURS) % len(DASHES)], linewidth=1.6,
        )  # fmt: skip
    if len(candidates) == 1:
        _mark_separation(axes, first, steps)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
    name_axes(axes, "step")
    key(axes, list(zip(names, lines, strict=True)))


def _mark_separation(axes: "Axes", metric: CurveMetric, steps: Sequence[int]) -> None:
    onset, detected = metric.onset_step, metric.detected_step
    if onset is not None:
        axes.axvline(onset, color=MUTED, linewidth=1, linestyle=(0, (2, 2)))
    if onset is not None and detected is not None:
        levels = ((metric.reference_level, REFERENCE), (metric.candidate_level, CANDIDATE))
        for level, colour in levels:
            if level is not None:
                # A window of one step has a width, too.
                axes.hlines(level, onset - 0.5, detected + 0.5, color=colour, linewidth=4)
    if detected is not None:
        axes.axvline(detected, color=INK, linewidth=1)
        left = detected > (steps[0] + steps[-1]) / 2
        axes.annotate(f"separated at {detected}", (detected, 0.02), fontsize=SMALL,
                      xycoords=("data", "axes fraction"), xytext=(-5 if left else 5, 0), textcoords="offset points",
                      ha="right" if left else "left", va="bottom", color=INK)  # fmt: skip


PICTURES = PictureKind("training-curves", 90, frozenset({"curves", CANARY}), pictures)
