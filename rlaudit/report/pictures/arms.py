"""Every arm's distance from the trainer (k3), with its interval and the noise floor."""

from collections.abc import Sequence

from rlaudit.report.compared_things import Group, Thing, groups
from rlaudit.report.drawing.forest import Mark, Row, forest, height_of
from rlaudit.report.drawing.roles import style_of
from rlaudit.report.figures import interval, number
from rlaudit.report.picture import Missing, Picture, PictureKind, Table
from rlaudit.report.report_format import Document

TITLE = "Distance from the trainer, arm by arm"
CAPTION = (
    "k3 in nats, mean(exp(d) − 1 − d) with d = trainer − rollout logprob, and its 95 % interval over prompts, on a "
    "logarithm."
)
FLOOR = " Shaded: the noise floor (of k2, which is k3 where d is small); what lies in it cannot be told from zero."
NO_ARMS = "no arm has been measured"


def pictures(document: Document) -> Sequence[Picture | Missing]:
    """A forest for each block, or for all tables."""
    found = [_picture(group) for group in groups(document) if any("k3" in one.measurements for one in group.things)]
    return found or [Missing(TITLE, NO_ARMS)]


def _picture(group: Group) -> Picture:
    rows, floor = [_row(one) for one in group.things], group.floor.get("k2")
    return Picture(
        f"arms-{group.slug}",
        TITLE,
        CAPTION + (FLOOR if floor else ""),
        Table(["arm", "k3 (nats) [95 % interval]", "tokens"], [_cells(one) for one in group.things]),
        height_of(rows),
        lambda figure: forest(figure, rows, floor, "k3 (nats)", positive=True),
        group=group.name,
    )


def _row(one: Thing) -> Row:
    colour, shape = style_of(one.role)
    found = one.measurements.get("k3")
    if found is None or found["value"] is None:
        return Row(one.short_name, one.state or "-", (), colour)
    mark = Mark(found["value"], found["low"], found["high"])
    return Row(one.short_name, number(found["value"]), (mark,), colour, shape)


def _cells(one: Thing) -> list[str]:
    found = one.measurements.get("k3")
    return [one.name, one.state, ""] if found is None else [one.name, interval(found), str(found["tokens"])]


PICTURES = PictureKind("arms", 10, frozenset({"ablate", "compare"}), pictures)
