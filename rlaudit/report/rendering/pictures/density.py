"""How d = trainer - rollout logprob is distributed: noise is a spike at zero, another meaning a wide hump beside it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rlaudit.report.figures import number
from rlaudit.report.rendering.compared_things import NO_TOKENS, Group, groups
from rlaudit.report.rendering.drawing.axes import decades, key, name_axes, plot, room_for_key, set_ticks, short
from rlaudit.report.rendering.drawing.styles import MUTED, styles
from rlaudit.report.rendering.picture import Missing, Picture, PictureKind, Sparkline, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

TITLE = "Density of d"
CAPTION = (
    "Share of tokens by d = trainer − rollout logprob, in {steps} equal steps, on a logarithm; {outside} of the tokens "
    "of the widest arm lie outside. Noise is a spike at zero, another meaning of the logprobs is wide or shifted."
)
HEIGHT = 250
STEPS = 51
# The share of the widest arm's tokens that the axis may leave out.
OUTSIDE = 0.005
Bins = Sequence[Sequence[float]]


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return a picture for each block, of its candidate, reference and parity arm."""
    drawn = [_picture(group) for group in groups(report) if group.main]
    return drawn or [Missing(TITLE, NO_TOKENS)]


def _picture(group: Group) -> Picture:
    bins_of = [thing.tokens.log_ratio for thing in group.main if thing.tokens]
    names = [thing.short_name for thing in group.main]
    furthest = max(_reach(bins) for bins in bins_of)
    edges = [furthest * (2 * step / STEPS - 1) for step in range(STEPS + 1)]
    shares_of = [_shares(bins, edges) for bins in bins_of]
    rows = [
        [f"{number(low)} to {number(high)}", *(f"{100 * share:.3g}" for share in shares)]
        for (low, high), *shares in zip(pairwise(edges), *shares_of, strict=True)
    ]
    outside = max(1 - sum(shares) for shares in shares_of)
    ends = f"{number(-furthest)} to {number(furthest)} nats"
    return Picture(
        f"density-{group.slug}",
        TITLE,
        CAPTION.format(steps=STEPS, outside=f"{100 * max(outside, 0):.1f} %"),
        Table(["d (nats)", *(f"{name}, % of tokens" for name in names)], rows),
        HEIGHT,
        lambda figure: _draw(figure, edges, shares_of, names, [thing.role for thing in group.main]),
        [Sparkline(name, shares, ends) for name, shares in zip(names, shares_of, strict=True)],
        group.name,
    )


def _reach(bins: Bins) -> float:
    """Return the |d| beyond which at most OUTSIDE of the tokens lie."""
    allowed = OUTSIDE * sum(tokens for _, _, tokens in bins)
    for furthest, tokens in sorted(((max(abs(low), abs(high)), tokens) for low, high, tokens in bins), reverse=True):
        allowed -= tokens
        if allowed < 0:
            return furthest
    return 1.0


def _shares(bins: Bins, edges: Sequence[float]) -> list[float]:
    """Return the share of tokens in each step. Tokens of a bin are spread evenly over the steps that it spans."""
    total = sum(tokens for _, _, tokens in bins) or 1
    width = edges[1] - edges[0]
    shares = [0.0] * (len(edges) - 1)
    for low, high, tokens in bins:
        first = max(int((low - edges[0]) // width), 0)
        last = min(int((high - edges[0]) // width), len(shares) - 1)
        for step in range(first, last + 1):
            inside = min(high, edges[step + 1]) - max(low, edges[step])
            shares[step] += max(inside, 0.0) / (high - low) * tokens / total
    return shares


def _draw(
    figure: "Figure",
    edges: Sequence[float],
    shares_of: Sequence[Sequence[float]],
    names: Sequence[str],
    roles: Sequence[str],
) -> None:
    from matplotlib.ticker import MaxNLocator

    axes = plot(figure, left=48, top=room_for_key(names))
    axes.set_yscale("log")
    lowest = min((100 * share for shares in shares_of for share in shares if share > 0), default=0.1)
    bottom = max(lowest, 0.01) / 1.5
    artists = []
    for shares, (colour, _, dashes) in zip(shares_of, styles(roles), strict=True):
        percent = [max(100 * share, bottom / 10) for share in shares]
        axes.stairs(percent, edges, baseline=bottom / 10, fill=True, color=colour, alpha=0.13, linewidth=0)
        artists.append(axes.stairs(percent, edges, baseline=bottom / 10, color=colour, linewidth=1.5, linestyle=dashes))
    axes.axvline(0, color=MUTED, linewidth=0.8, zorder=0)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom, 150)
    ticks = decades(bottom, 150)
    set_ticks(axes.yaxis, ticks, [short(float(f"{tick:.2g}")) for tick in ticks])
    across = [
        tick for tick in MaxNLocator(6, symmetric=True).tick_values(edges[0], edges[-1]) if abs(tick) <= edges[-1]
    ]
    set_ticks(axes.xaxis, across, [short(float(f"{tick:.6g}")) for tick in across])
    name_axes(axes, "d = trainer − rollout logprob (nats)", "% of tokens")
    key(axes, list(zip(names, artists, strict=True)))


PICTURES = PictureKind("density", 40, frozenset({"ablate", "compare"}), pictures)
