"""The first screen of a report with two sides: the answer, then the layers of each side and what the move does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlaudit.layers import Layer, Verdict
from rlaudit.rendering.outline import Block, Prose, Section, Table
from rlaudit.report.figures import number

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
    """Return a row for each side and one for the move, so that each layer is read downwards and fits 80 columns."""
    move = report["move"]
    sides = {
        _titled("today", move.today): move.today,
        _titled("after", move.after): move.after,
        "with the fix": move.fixed,
    }
    rows = [[title, *_cells(side)] for title, side in sides.items() if side is not None]
    header = ("", *(f"{place}. {layer}" for place, layer in enumerate(Layer, start=1)))
    return Table(header, [*rows, ["the move", *(str(change.change) for change in move.changes)]])


def _titled(name: str, side: "Side | None") -> str:
    return f"{name} ({side.vllm})" if side is not None and side.vllm else name


def _cells(side: "Side") -> Iterator[str]:
    semantic, _, objective = side.layers
    yield (", ".join(side.causes) or "unexplained") if semantic is Verdict.MISMATCH else str(semantic)
    yield "-" if side.k3 is None else f"k3 {number(side.k3.value)}"
    yield "-" if objective is Verdict.NOT_TESTED else str(objective)
