"""The first screen of a report with two sides: the answer, then the layers of each side and what the move does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlaudit.layers import Verdict
from rlaudit.rendering.outline import Block, Prose, Section, Table
from rlaudit.report.figures import interval

if TYPE_CHECKING:
    from rlaudit.diagnosis.move import Side
    from rlaudit.report.report import Report

TITLE = "What the move changes"


def moved(report: "Report") -> Section:
    """Return the section, without blocks if the report is of no move."""
    blocks: list[Block] = []
    if "move" in report:
        blocks = [Prose(report["move"].answer), _sides(report)]
    return Section("move", TITLE, blocks, gathers=True, leads=True)


def _sides(report: "Report") -> Table:
    """Return the layers of each side, and what the move does to each."""
    move = report["move"]
    sides = {"today": move.today, "after": move.after, "after, with the fix": move.fixed}
    shown = {name: list(_cells(side)) for name, side in sides.items() if side is not None}
    titles = [f"{name} ({side.vllm})" if side and side.vllm and name != "after, with the fix" else name
              for name, side in sides.items() if side is not None]  # fmt: skip
    rows = [
        [f"{place + 1}. {change.layer}", *(cells[place] for cells in shown.values()), str(change.change)]
        for place, change in enumerate(move.changes)
    ]
    return Table(("layer", *titles, "the move"), rows)


def _cells(side: "Side") -> Iterator[str]:
    semantic, _, objective = side.layers
    yield (", ".join(side.causes) or "unexplained") if semantic is Verdict.MISMATCH else str(semantic)
    yield "-" if side.k3 is None else f"k3 {interval(side.k3)}"
    yield "-" if objective is Verdict.NOT_TESTED else str(objective)
