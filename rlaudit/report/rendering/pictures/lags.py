"""Tokens by version lag: how many updates older the weights that sampled them were than the trainer's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.report.figures import number
from rlaudit.report.rendering.compared_things import groups
from rlaudit.report.rendering.drawing.axes import name_axes, plot, set_ticks, thinned
from rlaudit.report.rendering.drawing.styles import CANDIDATE
from rlaudit.report.rendering.picture import Missing, Picture, PictureKind, Sparkline, Table
from rlaudit.tokens.token_figures import Lag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

TITLE = "Version lag"
CAPTION = (
    "Tokens by how many updates the weights that sampled them are older than the trainer's. What lag alone adds is the "
    "objective's to correct, the path's faults are not."
)
ONE_LOAD = "every arm loads its weights once: no token has a lag"
NO_VERSIONS = "the tokens carry no rollout_version and trainer_version"
HEIGHT = 200


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return a picture for each table."""
    drawn = [
        _picture(f"{group.slug}-{index}", thing.name, thing.tokens.lags)
        for group in groups(report)
        for index, thing in enumerate(group.things)
        if thing.tokens and thing.tokens.lags
    ]
    return drawn or [Missing(TITLE, ONE_LOAD if report["command"] == "ablate" else NO_VERSIONS)]


def _picture(slug: str, name: str, lags: Sequence[Lag]) -> Picture:
    return Picture(
        f"lags-{slug}",
        f"{TITLE}: {name}" if name else TITLE,
        CAPTION,
        Table(
            ["lag (updates)", "tokens", "mean |d| (nats)"],
            [[str(group.lag), str(group.tokens), number(group.mean)] for group in lags],
        ),
        HEIGHT,
        lambda figure: _draw(figure, lags),
        [Sparkline(name, [group.tokens for group in lags], f"number of tokens at lag {lags[0].lag} to {lags[-1].lag}")],
    )


def _draw(figure: "Figure", lags: Sequence[Lag]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes = plot(figure, left=52)
    axes.grid(visible=False, axis="x")
    first, last = lags[0].lag, lags[-1].lag
    axes.bar([group.lag for group in lags], [group.tokens for group in lags], width=0.7, color=CANDIDATE, alpha=0.85)
    on_axis = range(first, last + 1)
    set_ticks(axes.xaxis, list(map(float, on_axis)), thinned(list(map(str, on_axis)), 12))
    axes.set_xlim(first - 0.6, last + 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tokens, _: f"{tokens:g}"))
    name_axes(axes, "lag (updates)", "tokens")


PICTURES = PictureKind("lags", 80, frozenset({"ablate", "compare"}), pictures)
