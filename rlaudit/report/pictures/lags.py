"""How old the weights were that sampled the tokens: tokens by version lag."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.report.compared_things import groups
from rlaudit.report.drawing.axes import name_axes, plot, set_ticks, thinned
from rlaudit.report.drawing.styles import CANDIDATE
from rlaudit.report.figures import interval, number
from rlaudit.report.parts.token_figures import Lag as LagFigures
from rlaudit.report.parts.weight_updates import LagGroup, UpdateCase
from rlaudit.report.picture import WEIGHT_UPDATES, Missing, Picture, PictureKind, Sparkline, Table
from rlaudit.report.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Version lag"
CAPTION = (
    "Tokens by how many updates the weights that sampled them are older than the trainer's. What lag alone adds is the "
    "objective's to correct, the path's faults are not."
)
ONE_LOAD = "every arm loads its weights once: no token has a lag"
NO_VERSIONS = "the tokens carry no rollout_version and trainer_version"
NO_FLIGHT = "no sequence of calls had tokens in flight"
HEIGHT = 200


@dataclass(frozen=True)
class Lag:
    """Tokens of one lag, and a figure of how far they are from the trainer."""

    lag: int
    tokens: int
    distance: str


def pictures(document: Report) -> Sequence[Picture | Missing]:
    """One for each table, or for each sequence of calls that had tokens in flight."""
    if "weight_updates" in document:
        return _of_updates(document["weight_updates"]["cases"]) or [Missing(TITLE, NO_FLIGHT)]
    found = [
        _picture(f"{group.slug}-{place}", one.name, _rows(one.tokens["lags"]), "mean |d| (nats)")
        for group in groups(document)
        for place, one in enumerate(group.things)
        if one.tokens and one.tokens["lags"]
    ]
    return found or [Missing(TITLE, ONE_LOAD if document["command"] == "ablate" else NO_VERSIONS)]


def _rows(lags: Sequence[LagFigures]) -> list[Lag]:
    return [Lag(one["lag"], one["tokens"], number(one["mean"])) for one in lags]


def _of_updates(cases: Sequence[UpdateCase]) -> list[Picture]:
    """Cases with the same lags would make the same picture: the tokens of all cases of an engine are added up."""
    found = []
    for place, engine in enumerate(dict.fromkeys(case["start"] for case in cases)):
        lags = [group for case in cases if case["start"] == engine for group in case["lags"]]
        if not lags:
            continue
        added = [
            Lag(lag, sum(one["tokens"] for one in lags if one["lag"] == lag), _worst(lags, lag))
            for lag in sorted({one["lag"] for one in lags})
        ]
        found.append(_picture(f"engine{place}", engine, added, "largest k3 against the trainer (nats)"))
    return found


def _worst(lags: Sequence[LagGroup], lag: int) -> str:
    found = [one["trainer_weights"].get("k3") for one in lags if one["lag"] == lag]
    known = [(one["value"], one) for one in found if one is not None and one["value"] is not None]
    return interval(max(known, key=lambda entry: entry[0])[1]) if known else "-"


def _picture(slug: str, name: str, lags: Sequence[Lag], distance: str) -> Picture:
    return Picture(
        f"lags-{slug}",
        f"{TITLE}: {name}" if name else TITLE,
        CAPTION,
        Table(["lag (updates)", "tokens", distance], [[str(one.lag), str(one.tokens), one.distance] for one in lags]),
        HEIGHT,
        lambda figure: _draw(figure, lags),
        [Sparkline(name, [one.tokens for one in lags], f"lag {lags[0].lag} to {lags[-1].lag}, tokens")],
    )


def _draw(figure: "Figure", lags: Sequence[Lag]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes = plot(figure, left=52)
    axes.grid(visible=False, axis="x")
    axes.bar([one.lag for one in lags], [one.tokens for one in lags], width=0.7, color=CANDIDATE, alpha=0.85)
    places = list(range(lags[0].lag, lags[-1].lag + 1))
    set_ticks(axes.xaxis, [float(place) for place in places], thinned([str(place) for place in places], 12))
    axes.set_xlim(lags[0].lag - 0.6, lags[-1].lag + 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tokens, _: f"{tokens:g}"))
    name_axes(axes, "lag (updates)", "tokens")


PICTURES = PictureKind("lags", 80, frozenset({"ablate", "compare", WEIGHT_UPDATES}), pictures)
