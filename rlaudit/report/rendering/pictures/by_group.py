"""|d| by group of tokens: the mean as a line, a band from the median to the 90th percentile, on a logarithm.

By position in the completion: a mismatch that grows along it is carried from token to token, as stale state is. By the
entropy of the trainer's distribution: rounding in the head moves tokens of low entropy less.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rlaudit.report.figures import number
from rlaudit.report.rendering.compared_things import NO_TOKENS, Group, Thing, groups
from rlaudit.report.rendering.drawing.axes import decades, key, name_axes, plot, room_for_key, set_ticks, short, thinned
from rlaudit.report.rendering.drawing.styles import styles
from rlaudit.report.rendering.picture import Missing, Picture, PictureKind, Sparkline, Table
from rlaudit.tokens.token_figures import TokenGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

HEIGHT = 250
NAMES = 9
Column = Literal["by_position", "by_entropy"]
POSITION, ENTROPY = "|d| by position", "|d| by entropy"
OF_POSITION = (
    "Mean |d| of the tokens at each position of the completion (0 is its first token), in groups that widen. The band "
    "goes from the median to the 90th percentile."
)
OF_ENTROPY = (
    "Mean |d| of the tokens by the entropy that the trainer's distribution had at their place. The band goes from the "
    "median to the 90th percentile."
)
NO_ENTROPY = "the tokens carry no trainer_entropy"


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return a picture by position for each block, then one by entropy for each block that has entropies."""
    compared = groups(report)
    missing = NO_ENTROPY if any(group.main for group in compared) else NO_TOKENS
    position = [
        _grouped(group, "by-position", POSITION, OF_POSITION, "by_position", "position in the completion")
        for group in compared
    ]
    entropy = [_grouped(group, "by-entropy", ENTROPY, OF_ENTROPY, "by_entropy", "entropy (nats)") for group in compared]
    drawn: list[Picture | Missing] = [picture for picture in position if picture is not None] or [
        Missing(POSITION, NO_TOKENS)
    ]
    drawn += [picture for picture in entropy if picture is not None] or [Missing(ENTROPY, missing)]
    return drawn


def _grouped(group: Group, name: str, title: str, caption: str, column: Column, across: str) -> Picture | None:
    """Return the picture of `column` of token_figures; None if no main arm has it."""
    things = [thing for thing in group.main if getattr(thing.tokens, column, None)]
    if not things:
        return None
    rows_of: list[dict[float, TokenGroup]] = [
        {row["from"]: row for row in getattr(thing.tokens, column)} for thing in things
    ]
    limits = sorted({limit for rows in rows_of for limit in rows})
    below = {limit: row["below"] for rows in rows_of for limit, row in rows.items()}
    whole = column == "by_position"
    names = [thing.short_name for thing in things]
    cells = [
        [_range(limit, below[limit], whole), *(cell for rows in rows_of for cell in _cells(rows.get(limit)))]
        for limit in limits
    ]
    header = [across, *(f"{arm}: {figure}" for arm in names for figure in ("tokens", "mean |d|", "median", "90 %"))]
    ends = f"{_range(limits[0], below[limits[0]], whole)} to {_range(limits[-1], below[limits[-1]], whole)}"
    return Picture(
        f"{name}-{group.slug}",
        title,
        caption,
        Table(header, cells),
        HEIGHT,
        lambda figure: _draw(figure, limits, rows_of, things, across),
        [
            Sparkline(arm, [rows[limit]["mean"] if limit in rows else None for limit in limits], ends)
            for arm, rows in zip(names, rows_of, strict=True)
        ],
        group.name,
    )


def _cells(row: TokenGroup | None) -> list[str]:
    if row is None:
        return ["-"] * 4
    return [str(row["tokens"]), *map(number, (row["mean"], row["median"], row["p90"]))]


def _range(low: float, below: float | None, whole: bool) -> str:
    if below is None:
        return f"{short(low)} or more"
    if whole:
        return short(low) if below - low <= 1 else f"{short(low)}–{short(below - 1)}"
    return f"{short(low)}–{short(below)}"


def _draw(
    figure: "Figure",
    limits: Sequence[float],
    rows_of: Sequence[Mapping[float, TokenGroup]],
    things: Sequence[Thing],
    across: str,
) -> None:
    axes = plot(figure, left=48, top=room_for_key([thing.short_name for thing in things]))
    axes.set_yscale("log")
    artists, seen = [], list[float]()
    for rows, (colour, mark, dashes) in zip(rows_of, styles([thing.role for thing in things]), strict=True):
        drawn = [(index, rows[limit]) for index, limit in enumerate(limits) if limit in rows]
        means = [(index, row["mean"]) for index, row in drawn if row["mean"] > 0]
        band = [(index, row) for index, row in drawn if row["median"] > 0 and row["p90"] > 0]
        axes.fill_between([index for index, _ in band], [row["median"] for _, row in band],
                          [row["p90"] for _, row in band], color=colour, alpha=0.13, linewidth=0)  # fmt: skip
        artists += axes.plot([index for index, _ in means], [mean for _, mean in means], color=colour, marker=mark,
                             markersize=4, linewidth=1.5, linestyle=dashes)  # fmt: skip
        seen += [mean for _, mean in means] + [row[name] for _, row in band for name in ("median", "p90")]
    low, high = min(seen, default=1e-3) / 1.6, max(seen, default=1.0) * 1.6
    axes.set_ylim(low, high)
    ticks = decades(low, high, 6) or [low, high]
    set_ticks(axes.yaxis, ticks, [short(float(f"{tick:.2g}")) for tick in ticks])
    set_ticks(
        axes.xaxis, [float(index) for index in range(len(limits))], thinned([short(limit) for limit in limits], NAMES)
    )
    name_axes(axes, across, "|d| (nats)")
    key(axes, list(zip([thing.short_name for thing in things], artists, strict=True)))


PICTURES = PictureKind("by-group", 50, frozenset({"ablate", "compare"}), pictures)
