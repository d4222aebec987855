"""An empty plot with quiet axes, sized in CSS pixels.

Its numbers are few, short, and written alike in every picture. Its key stands above the plot, in two columns if the
names are long.
"""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from rlaudit.report.rendering.drawing.styles import GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL = 10.0
LABEL = 10.5
MOST = 7  # numbers on an axis
# Of the key:
ROW_SIGNS = 34  # signs of all names that fit one row, beside the name of the axis
NAME_SIGNS = 22
ROW = 15.0
TOP = 26.0


def plot(figure: "Figure", left: float = 46, right: float = 10, top: float = 26, bottom: float = 38) -> "Axes":
    """Return a plot with these margins in pixels, grid lines behind and no frame."""
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
    """Name the horizontal axis below the plot and the vertical one above it, to be read without turning."""
    axes.set_xlabel(across, color=INK, fontsize=LABEL, labelpad=5)
    if up:
        axes.annotate(up, (0, 1), xytext=(-38, 8), xycoords="axes fraction", textcoords="offset points",
                      color=INK, fontsize=LABEL, ha="left", va="bottom")  # fmt: skip


def set_ticks(axis: Any, places: list[float], labels: list[str]) -> None:
    """Draw these ticks and no others."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(NullLocator())


def dots(axes: "Axes", points: list[tuple[float, float]], colour: str, size: float, alpha: float) -> None:
    """Draw round dots as one path: a tenth of the characters that a mark for each would take."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    vertices = [vertex for point in points for vertex in (point, point)]
    codes = [Path.MOVETO, Path.LINETO] * len(points)
    if vertices:
        axes.add_patch(PathPatch(Path(vertices, codes), edgecolor=colour, facecolor="none", linewidth=size,
                                 capstyle="round", alpha=alpha))  # fmt: skip


def room_for_key(names: Sequence[str]) -> float:
    """Return the margin above the plot, in pixels."""
    rows = -(-len(names) // 2)
    return TOP if _fit_one_row(names) else TOP + 4 + ROW * rows


def key(axes: "Axes", entries: Sequence[tuple[str, Any]]) -> None:
    """Draw a key above the plot. entries: (name, artist) pairs."""
    names = [_cut(name) for name, _ in entries]
    one_row = _fit_one_row(names)
    above = 0.0 if one_row else TOP - 8
    height = float(axes.get_window_extent().height)
    axes.legend(
        [artist for _, artist in entries], names, loc="lower right" if one_row else "lower left",
        bbox_to_anchor=(1.0 if one_row else 0.0, 1.0 + above / height), ncols=len(entries) if one_row else 2,
        frameon=False, fontsize=SMALL, labelcolor=INK, handlelength=1.6, handletextpad=0.5, columnspacing=1.2,
        labelspacing=0.25, borderaxespad=0.2, borderpad=0.1,
    )  # fmt: skip


def _fit_one_row(names: Sequence[str]) -> bool:
    return sum(len(_cut(name)) for name in names) <= ROW_SIGNS


def _cut(name: str) -> str:
    return name if len(name) <= NAME_SIGNS else f"{name[: NAME_SIGNS - 1]}…"


def short(value: float) -> str:
    """Return a number in few signs: 0, 0.001, 0.25, 40, 1e-7."""
    if value == 0:
        return "0"
    sign, size = ("−" if value < 0 else ""), abs(value)
    if not 1e-3 <= size < 1e5:
        digits, power = f"{size:.0e}".split("e")
        return f"{sign}{digits}e{'−' if power.startswith('-') else ''}{int(power.lstrip('+-'))}"
    return f"{sign}{size:g}"


def decades(low: float, high: float, most: int = MOST) -> list[float]:
    """Return the powers of ten from low to high, both above zero, thinned to at most `most`.

    If at most one power fits, return 1, 2 and 5 times each instead.
    """
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    step = max(1, ceil((last - first + 1) / most))
    if last <= first:
        between = [size * 10.0**power for power in range(first - 1, last + 2) for size in (1, 2, 5)]
        return [tick for tick in between if low <= tick <= high]
    return [10.0**power for power in range(last, first - 1, -step)][::-1]


def both_sides(inner: float, outer: float) -> list[float]:
    """Return 0 and powers of ten above `inner` up to `outer`, on both sides."""
    positive = decades(inner, outer, MOST // 2) if outer > inner else []
    return [*(-tick for tick in reversed(positive)), 0.0, *positive]


def thinned(labels: Sequence[str], most: int) -> list[str]:
    """Return every nth label, the others empty, so that at most `most` are written."""
    step = ceil(len(labels) / most) or 1
    return [label if index % step == 0 else "" for index, label in enumerate(labels)]
