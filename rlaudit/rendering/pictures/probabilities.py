"""The probability that the rollout gave to a token against the one that the trainer gives it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.rendering.compared_things import NO_TOKENS, Group, Thing, groups
from rlaudit.rendering.drawing.axes import dots, key, name_axes, plot, room_for_key, set_ticks, short
from rlaudit.rendering.drawing.styles import MUTED, styles
from rlaudit.rendering.picture import Missing, Picture, PictureKind, Table
from rlaudit.report.figures import number

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


def pictures(document: "Report") -> Sequence[Picture | Missing]:
    """One for each block."""
    found = [_picture(group) for group in groups(document) if group.main]
    return found or [Missing(TITLE, NO_TOKENS)]


def _picture(group: Group) -> Picture:
    things = group.main
    drawn = max((len(one.tokens.probabilities.sample) for one in things if one.tokens), default=0)
    rows = [
        [
            f"{one.short_name}: {short(row['from'])}–{short(row['below'])}",
            str(row["tokens"]),
            *map(number, (row["rollout"], row["trainer"], row["apart"])),
        ]
        for one in things
        if one.tokens
        for row in one.tokens.probabilities.groups
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
    axes = plot(figure, top=room_for_key([one.short_name for one in things]))
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8)
    keys = []
    for one, (colour, _, _) in zip(things, styles([one.role for one in things]), strict=True):
        sample = one.tokens.probabilities.sample if one.tokens else []
        dots(axes, [(rollout, trainer) for rollout, trainer in sample], colour, size=3.6, alpha=0.55)
        keys += axes.plot([], [], color=colour, marker="o", markersize=4.5, linestyle="none")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    for axis in (axes.xaxis, axes.yaxis):
        set_ticks(axis, list(TICKS), [short(tick) for tick in TICKS])
    name_axes(axes, "probability reported by the rollout", "trainer")
    key(axes, list(zip([one.short_name for one in things], keys, strict=True)))


PICTURES = PictureKind("probabilities", 70, frozenset({"ablate", "compare"}), pictures)
