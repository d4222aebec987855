"""One metric of every arm as a forest: its value, its interval, and the noise floor."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.report.compared_things import Group, Thing, groups
from rlaudit.report.drawing.forest import Mark, Row, forest, height_of
from rlaudit.report.drawing.styles import mark_of
from rlaudit.report.figures import interval, number
from rlaudit.report.parts.measured import Measurement
from rlaudit.report.picture import Missing, Picture, Table
from rlaudit.report.report import Report


@dataclass(frozen=True)
class ArmForest:
    """What is drawn. floor: the metric whose noise floor is shaded, and floor_said what the caption adds then.

    column: the header of its table. across: the name of the axis. times: what values are multiplied with.
    """

    name: str
    title: str
    caption: str
    metric: str
    floor: str
    floor_said: str
    column: str
    across: str
    positive: bool
    times: float = 1.0

    def pictures(self, document: Report) -> Sequence[Picture | Missing]:
        """A forest for each block, or for all tables."""
        known = [one for one in groups(document) if any(self.metric in thing.measurements for thing in one.things)]
        return [self._picture(group) for group in known] or [Missing(self.title, "no arm has been measured")]

    def _picture(self, group: Group) -> Picture:
        floor = group.floor.get(self.floor)
        scaled = [(one, self._scaled(one)) for one in group.things]
        rows = [_row(one, found) for one, found in scaled]
        shaded = floor * self.times if floor else None
        return Picture(
            f"{self.name}-{group.slug}",
            self.title,
            self.caption + (self.floor_said if floor else ""),
            Table(["arm", self.column, "tokens"], [_cells(one, found) for one, found in scaled]),
            height_of(rows),
            lambda figure: forest(figure, rows, shaded, self.across, positive=self.positive),
            group=group.name,
        )

    def _scaled(self, one: Thing) -> Measurement | None:
        found = one.measurements.get(self.metric)
        if found is None:
            return None
        value, low, high = (
            None if end is None else end * self.times for end in (found["value"], found["low"], found["high"])
        )
        return {**found, "value": value, "low": low, "high": high}


def _row(one: Thing, found: Measurement | None) -> Row:
    colour, shape = mark_of(one.role)
    if found is None or found["value"] is None:
        return Row(one.short_name, one.state or "-", (), colour)
    value = found["value"]
    said = f"{value:.0f}" if abs(value) >= 1000 else number(value)
    return Row(one.short_name, said, (Mark(value, found["low"], found["high"]),), colour, shape)


def _cells(one: Thing, found: Measurement | None) -> list[str]:
    return [one.name, one.state, ""] if found is None else [one.name, interval(found), str(found["tokens"])]
