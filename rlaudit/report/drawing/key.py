"""The key of a picture: which line is which, above the plot, in two columns where the names are long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlaudit.report.drawing.axes import SMALL
from rlaudit.report.drawing.styles import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Signs of all names that stand in one row, beside the name of the axis.
ROW_SIGNS = 34
NAME_SIGNS = 22
ROW = 15.0
TOP = 26.0


def room_for_key(names: Sequence[str]) -> float:
    """The margin above the plot, in pixels."""
    rows = -(-len(names) // 2)
    return TOP if _one_row(names) else TOP + 4 + ROW * rows


def key(axes: "Axes", entries: Sequence[tuple[str, Any]]) -> None:
    """entries: (name, artist) pairs."""
    names = [_short(name) for name, _ in entries]
    one_row = _one_row([name for name, _ in entries])
    above = 0.0 if one_row else TOP - 8
    height = float(axes.get_window_extent().height)
    axes.legend(
        [artist for _, artist in entries], names, loc="lower right" if one_row else "lower left",
        bbox_to_anchor=(1.0 if one_row else 0.0, 1.0 + above / height), ncols=len(entries) if one_row else 2,
        frameon=False, fontsize=SMALL, labelcolor=INK, handlelength=1.6, handletextpad=0.5, columnspacing=1.2,
        labelspacing=0.25, borderaxespad=0.2, borderpad=0.1,
    )  # fmt: skip


def _one_row(names: Sequence[str]) -> bool:
    return sum(len(_short(name)) for name in names) <= ROW_SIGNS


def _short(name: str) -> str:
    return name if len(name) <= NAME_SIGNS else f"{name[: NAME_SIGNS - 1]}…"
