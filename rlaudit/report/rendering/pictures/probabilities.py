"""The probability of each token under the rollout, against that under the trainer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.report.figures import number
from rlaudit.report.rendering.compared_things import NO_TOKENS, Group, Thing, groups
from rlaudit.report.rendering.drawing.axes import dots, key, name_axes, plot, room_for_key, set_ticks, short
from rlaudit.report.rendering.drawing.styles import MUTED, styles
from rlaudit.report.rendering.picture import Missing, Picture, PictureKind, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlaudit.report.report import Report

TITLE = "Rollout against trainer probability"
CAPTION = (
    "{drawn} tokens drawn at random from each arm. On the line both sides agree; a bend away from it is another "
    "meaning (temperature, filters), a cloud around it is noise. The table has means of all tokens."
)
HEIGHT = 350
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def pictures(report: "Report") -> Sequence[Picture | Missing]:
    """Return a picture for each block."""
    drawn = [_picture(group) for group in groups(report) if group.main]
    return drawn or [Missing(TITLE, NO_TOKENS)]


def _picture(group: Group) -> Picture:
    things = group.main
    drawn = max((len(thing.tokens.probabilities.sample) for thing in things if thing.tokens), default=0)
    rows = [
        [
            f"{thing.short_name}: {short(row['from'])}–{short(row['below'])}",
            str(row["tokens"]),
            *map(number, (row["rollout"], row["trainer"], row["apart"])),
        ]
        for thing in things
        if thing.tokens
        for row in thing.tokens.probabilities.groups
    ]
    header = ["rollout probability", "tokens", "mean rollout", "mean trainer", "mean |difference|"]
    return Picture(
        f"probabilities-{group.slug}",
        TITLE,
        CAPTION.format(drawn=drawn),
        Table(header, rows),
        HEIGHT,
        lambda figure: _draw(figure, things),
        group=group.name,
    )


def _draw(figure: "Figure", things: Sequence[Thing]) -> None:
    axes = plot(figure, top=room_for_key([thing.short_name for thing in things]))
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8)
    keys = []
    for thing, (colour, _, _) in zip(things, styles([thing.role for thing in things]), strict=True):
        sample = thing.tokens.probabilities.sample if thing.tokens else []
        dots(axes, [(rollout, trainer) for rollout, trainer in sample], colour, size=3.6, alpha=0.55)
        keys += axes.plot([], [], color=colour, marker="o", markersize=4.5, linestyle="none")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    for axis in (axes.xaxis, axes.yaxis):
        set_ticks(axis, list(TICKS), [short(tick) for tick in TICKS])
    name_axes(axes, "probability reported by the rollout", "trainer")
    key(axes, list(zip([thing.short_name for thing in things], keys, strict=True)))


PICTURES = PictureKind("probabilities", 70, frozenset({"ablate", "compare"}), pictures)
