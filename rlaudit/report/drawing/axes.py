"""An empty plot with quiet axes, sized in CSS pixels."""

from typing import TYPE_CHECKING, Any

from rlaudit.report.drawing.styles import GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL = 10.0
LABEL = 10.5


def plot(figure: "Figure", left: float = 46, right: float = 10, top: float = 26, bottom: float = 38) -> "Axes":
    """One plot with these margins in pixels; grid lines behind, no frame."""
    width, height = (size * 72 for size in figure.get_size_inches())
    axes = figure.add_axes((left / width, bottom / height, (width - left - right) / width,
                            (height - top - bottom) / height), facecolor="none")  # fmt: skip
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(color=MUTED, linewidth=0.8)
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=SMALL, length=3, width=0.8, pad=4)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.minorticks_off()
    return axes


def name_axes(axes: "Axes", across: str, up: str = "") -> None:
    """What is drawn across, below the plot; what is drawn upwards, above it, where it can be read without turning."""
    axes.set_xlabel(across, color=INK, fontsize=LABEL, labelpad=5)
    if up:
        axes.annotate(up, (0, 1), xytext=(-38, 8), xycoords="axes fraction", textcoords="offset points",
                      color=INK, fontsize=LABEL, ha="left", va="bottom")  # fmt: skip


def set_ticks(axis: Any, places: list[float], labels: list[str]) -> None:
    """These ticks and no others."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(NullLocator())


def dots(axes: "Axes", points: list[tuple[float, float]], colour: str, size: float, alpha: float) -> None:
    """Round dots as one path: a tenth of the characters that a mark for each would take."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    vertices = [vertex for point in points for vertex in (point, point)]
    codes = [Path.MOVETO, Path.LINETO] * len(points)
    if vertices:
        axes.add_patch(PathPatch(Path(vertices, codes), edgecolor=colour, facecolor="none", linewidth=size,
                                 capstyle="round", alpha=alpha))  # fmt: skip
