"""How far the mean importance ratio of every arm is from 1, in ten-thousandths."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlaudit.report.compared_things import Group, Thing, groups
from rlaudit.report.drawing.forest import Mark, Row, forest, height_of
from rlaudit.report.drawing.roles import style_of
from rlaudit.report.figures import interval, number
from rlaudit.report.picture import Missing, Picture, PictureKind, Table
from rlaudit.report.report_format import Document

TITLE = "Ratio deviation × 10⁴"
CAPTION = (
    "mean exp(d) − 1, times 10 000, with its 95 % interval over prompts. It is 0 when the reported logprobs are those "
    "the tokens were sampled with, whatever the noise."
)
FLOOR = " Shaded: the noise floor."
METRIC = "mean_ratio_minus_one"
TIMES = 1e4


def pictures(document: Document) -> Sequence[Picture | Missing]:
    """A forest for each block, or for all tables."""
    found = [_picture(group) for group in groups(document) if any(METRIC in one.measurements for one in group.things)]
    return found or [Missing(TITLE, "no arm has been measured")]


def _picture(group: Group) -> Picture:
    floor = group.floor.get(METRIC)
    rows = [_row(one) for one in group.things]
    return Picture(
        f"ratio-deviation-{group.slug}",
        TITLE,
        CAPTION + (FLOOR if floor else ""),
        Table(["arm", "× 10⁴ [95 % interval]", "tokens"], [_cells(one) for one in group.things]),
        height_of(rows),
        lambda figure: forest(figure, rows, floor * TIMES if floor else None, "(mean ratio − 1) × 10⁴", positive=False),
        group=group.name,
    )


def _scaled(found: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: found[name] for name in ("value", "low", "high")}
    return {**found, **{name: None if value is None else value * TIMES for name, value in values.items()}}


def _row(one: Thing) -> Row:
    colour, shape = style_of(one.role)
    found = one.measurements.get(METRIC)
    if found is None or found["value"] is None:
        return Row(one.short_name, one.state or "-", (), colour)
    scaled = _scaled(found)
    mark = Mark(scaled["value"], scaled["low"], scaled["high"])
    return Row(one.short_name, _figure(scaled["value"]), (mark,), colour, shape)


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else number(value)


def _cells(one: Thing) -> list[str]:
    found = one.measurements.get(METRIC)
    return [one.name, one.state, ""] if found is None else [one.name, interval(_scaled(found)), str(found["tokens"])]


PICTURES = PictureKind("ratio-deviation", 20, frozenset({"ablate", "compare"}), pictures)
