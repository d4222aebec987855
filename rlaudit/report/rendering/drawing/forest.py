"""A forest: a row for each arm or factor, its value as a mark, its interval as a line, the noise of repeats as a band.

`ArmForest` draws one metric of every arm so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from rlaudit.report.figures import interval, number
from rlaudit.report.rendering.compared_things import Group, Thing, groups
from rlaudit.report.rendering.drawing.axes import SMALL, both_sides, decades, name_axes, plot, set_ticks, short
from rlaudit.report.rendering.drawing.styles import BAND, GRID, INK, MUTED, PAPER, mark_of
from rlaudit.report.rendering.picture import Missing, Picture, Table
from rlaudit.statistics.measurement.measure import Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

ROW = 35
MARGINS = 50
NAME_SIGNS = 34
# If values are further apart than this factor, the small ones look like zero on a linear axis.
LINEAR_UP_TO = 200.0


@dataclass(frozen=True)
class Mark:
    """A value with its interval."""

    value: float
    low: float | None
    high: float | None
    hollow: bool = False  # for the second mark of a row


@dataclass(frozen=True)
class Row:
    """A name and what is drawn below it."""

    name: str
    # At the right: the figure, or why there is none.
    label: str
    marks: Sequence[Mark]
    colour: str
    shape: str = "o"


def height_of(rows: Sequence[Row]) -> int:
    """Return the height in pixels."""
    return MARGINS + ROW * len(rows)


def forest(figure: "Figure", rows: Sequence[Row], floor: float | None, across: str, *, positive: bool) -> None:
    """Draw a forest. positive: values cannot be negative and are drawn on a logarithm, else on both sides of zero."""
    axes = plot(figure, left=12, right=12, top=6, bottom=44)
    axes.set_ylim(len(rows) - 0.35, -0.65)
    axes.set_yticks([])
    lowest = _logarithm(axes, rows, floor) if positive else _signed(axes, rows, floor)
    for height, row in enumerate(rows):
        if height:
            axes.axhline(height - 0.62, color=GRID, linewidth=0.6)
        name = row.name if len(row.name) <= NAME_SIGNS else row.name[: NAME_SIGNS - 1] + "…"
        axes.annotate(name, (0, height - 0.31), xycoords=("axes fraction", "data"), fontsize=SMALL, color=INK,
                      va="center", ha="left", zorder=4)  # fmt: skip
        axes.annotate(row.label, (1, height - 0.31), xycoords=("axes fraction", "data"), fontsize=SMALL, color=MUTED,
                      va="center", ha="right", zorder=4)  # fmt: skip
        for offset, mark in enumerate(row.marks):
            _draw(axes, mark, row, height + 0.05 + 0.17 * offset, lowest)
    name_axes(axes, across)


def _draw(axes: "Axes", mark: Mark, row: Row, height: float, lowest: float) -> None:
    if mark.low is not None and mark.high is not None:
        axes.plot([max(mark.low, lowest), max(mark.high, lowest)], [height, height], color=row.colour, linewidth=2.2,
                  solid_capstyle="butt", alpha=0.75)  # fmt: skip
    axes.plot([max(mark.value, lowest)], [height], marker="D" if mark.hollow else row.shape, markersize=5.5,
              color=row.colour, markerfacecolor=PAPER if mark.hollow else row.colour, markeredgewidth=1.3)  # fmt: skip


def _ends(rows: Sequence[Row]) -> list[float]:
    return [end for row in rows for mark in row.marks for end in (mark.value, mark.low, mark.high) if end is not None]


def _logarithm(axes: "Axes", rows: Sequence[Row], floor: float | None) -> float:
    """Set up a logarithmic axis. Return its lower end, where lower values are drawn."""
    above_zero = [end for end in _ends(rows) if end > 0] + ([floor] if floor else [])
    low, high = min(above_zero, default=1e-3) / 4, max(above_zero, default=1.0) * 4
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = decades(low, high)
    set_ticks(axes.xaxis, ticks, [short(tick) for tick in ticks])
    if floor:
        axes.axvspan(low, floor, color=BAND, linewidth=0)
    return low


def _signed(axes: "Axes", rows: Sequence[Row], floor: float | None) -> float:
    """Set up an axis on both sides of zero. Return -inf, since every value is drawn as it is."""
    furthest = max([abs(end) for end in _ends(rows)] + [floor or 0.0]) or 1.0
    sizes = [abs(mark.value) for row in rows for mark in row.marks if mark.value]
    inner = max(min(sizes, default=furthest), floor or 0.0)
    if max(sizes, default=0.0) > LINEAR_UP_TO * inner:
        axes.set_xscale("symlog", linthresh=inner, linscale=0.5)
        axes.set_xlim(-furthest * 3, furthest * 3)
        ticks = both_sides(inner * 1.5, furthest * 3)
    else:
        from matplotlib.ticker import MaxNLocator

        axes.set_xlim(-furthest * 1.15, furthest * 1.15)
        ticks = list(MaxNLocator(5).tick_values(-furthest, furthest))[1:-1]
    set_ticks(axes.xaxis, ticks, [short(float(f"{tick:.6g}")) for tick in ticks])
    if floor:
        axes.axvspan(-floor, floor, color=BAND, linewidth=0)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    return -inf


@dataclass(frozen=True)
class ArmForest:
    """One metric, and how it is drawn."""

    name: str
    title: str
    caption: str
    metric: str
    floor: str  # the metric whose noise is shaded
    floor_said: str  # what the caption adds if there is any noise
    column: str  # a header of the table
    across: str  # the name of the axis
    positive: bool
    times: float = 1.0  # what values are multiplied with

    def pictures(self, report: "Report") -> Sequence[Picture | Missing]:
        """Return a forest for each block, or for all tables."""
        measured = [
            group for group in groups(report) if any(self.metric in thing.measurements for thing in group.things)
        ]
        return [self._picture(group) for group in measured] or [Missing(self.title, "no arm has been measured")]

    def _picture(self, group: Group) -> Picture:
        floor = group.floor.get(self.floor)
        scaled = [(thing, self._scaled(thing)) for thing in group.things]
        rows = [_row(thing, measurement) for thing, measurement in scaled]
        shaded = floor * self.times if floor else None
        return Picture(
            f"{self.name}-{group.slug}",
            self.title,
            self.caption + (self.floor_said if floor else ""),
            Table(["arm", self.column, "tokens"], [_cells(thing, measurement) for thing, measurement in scaled]),
            height_of(rows),
            lambda figure: forest(figure, rows, shaded, self.across, positive=self.positive),
            group=group.name,
        )

    def _scaled(self, thing: Thing) -> Measurement | None:
        measurement = thing.measurements.get(self.metric)
        if measurement is None:
            return None
        figures = (measurement.value, measurement.low, measurement.high)
        value, low, high = (None if figure is None else figure * self.times for figure in figures)
        return replace(measurement, value=value, low=low, high=high)


def _row(thing: Thing, measurement: Measurement | None) -> Row:
    colour, shape = mark_of(thing.role)
    if measurement is None or measurement.value is None:
        return Row(thing.short_name, thing.state or "-", (), colour)
    value = measurement.value
    figure = f"{value:.0f}" if abs(value) >= 1000 else number(value)
    return Row(thing.short_name, figure, (Mark(value, measurement.low, measurement.high),), colour, shape)


def _cells(thing: Thing, measurement: Measurement | None) -> list[str]:
    if measurement is None:
        return [thing.name, thing.state, ""]
    return [thing.name, interval(measurement), str(measurement.tokens)]
