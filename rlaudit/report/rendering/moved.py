"""The first screen of a report with two sides: the answer, then the layers of each side and what the move does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlaudit.diagnosis.move import Change
from rlaudit.layers import Layer, Verdict
from rlaudit.report.figures import number
from rlaudit.report.rendering.outline import Block, Lines, Prose, Section, Table

if TYPE_CHECKING:
    from rlaudit.diagnosis.move import Move, Side
    from rlaudit.report.report import Report

TITLE = "What the move changes"
NOT_KNOWN = "-"
# Of a side whose logprobs mean something else: its arm below has another k3.
UNDER_ITS_MEANING = (
    "for this k3, the logprobs of both sides were first brought to the sampling temperature, so raw logprobs do not "
    "raise it; the figures below use the logprobs as reported"
)


def moved(report: "Report") -> Section:
    """Return the section, without blocks if the report is of no move."""
    blocks: list[Block] = []
    if "move" in report:
        move = report["move"]
        means_another = any(side and side.layers[0] is Verdict.MISMATCH for side in (move.today, move.after))
        compared = move.changes[1].change is not Change.UNKNOWN
        notes = [UNDER_ITS_MEANING] if means_another and compared else []
        open_sides = {"today's engine": move.today, "the engine after the move": move.after}
        notes += [
            f"{name} alone is inconclusive: {side.unsettled}"
            for name, side in open_sides.items()
            if side is not None and side.unsettled and side.layers[0] is Verdict.INCONCLUSIVE
        ]
        arms = {"today": move.today, "after": move.after, "with the fix": move.fixed}
        named = [f"{title} = {side.arm}" for title, side in arms.items() if side is not None and side.arm]
        notes += [f"names of the engines in the tables below: {', '.join(named)}"] if named else []
        blocks = [Prose(move.answer), _sides(move), *([Lines(notes, mark="")] if notes else [])]
    return Section("move", TITLE, blocks, gathers=True, leads=True)


def _sides(move: "Move") -> Table:
    """Return a row for each side and one for the move, so that each layer is read downwards and fits 80 columns."""
    sides = {_titled("today", move.today): move.today, _titled("after", move.after): move.after}
    rows = [[title, *_cells(side)] for title, side in sides.items() if side is not None]
    changes = [
        NOT_KNOWN if change.change is Change.UNKNOWN and NOT_KNOWN in cells else str(change.change)
        for change, cells in zip(move.changes, [*zip(*rows, strict=True)][1:], strict=True)
    ]
    fixed = [["with the fix", *_cells(move.fixed)]] if move.fixed is not None else []
    header = ("", *(f"{place}. {layer}" for place, layer in enumerate(Layer, start=1)))
    return Table(header, [*rows, ["the move", *changes], *fixed])


def _titled(name: str, side: "Side | None") -> str:
    return f"{name} ({side.vllm})" if side is not None and side.vllm else name


def _cells(side: "Side") -> Iterator[str]:
    semantic, _, objective = side.layers
    yield (", ".join(side.causes) or "unexplained") if semantic is Verdict.MISMATCH else str(semantic)
    yield NOT_KNOWN if side.k3 is None else f"k3 {number(side.k3.value)} nats"
    yield NOT_KNOWN if objective is Verdict.NOT_TESTED else str(objective)
