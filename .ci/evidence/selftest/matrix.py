"""What a self-test found: the confusion matrix and its targets, and how they are printed."""

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

CELLS = ("planted", "dose", "trials", "recall", "wrong", "named")
TARGETS = ("target", "measured [95 % interval]", "wanted", "trials", "")
SHOWN = 3


class Named(TypedDict):
    """Causes that were named together, and how often."""

    causes: str
    trials: int


class Cell(TypedDict):
    """One fault at one dose."""

    planted: str
    dose: str
    trials: int
    recall: float
    wrong: float
    named: Sequence[Named]


class Target(TypedDict):
    """A figure that has to be reached."""

    title: str
    value: float
    low: float
    high: float
    bound: float
    at_most: bool
    met: bool
    events: int
    trials: int


@dataclass(frozen=True)
class Matrix:
    """All cells of one self-test. met: whether every target is."""

    met: bool
    description: str
    cells: Sequence[Cell]
    targets: Sequence[Target]
    missed: Sequence[str]
    not_seen: Sequence[str]


def printed(matrix: Matrix) -> str:
    """The matrix, the targets, what is below its target, and what was not planted."""
    parts = [
        f"self-test: {matrix.description}, {sum(one['trials'] for one in matrix.cells)} trials\n",
        _table(CELLS, [_cell(one) for one in matrix.cells]),
    ]
    if matrix.targets:
        parts.append(_table(TARGETS, [_target(one) for one in matrix.targets]))
    parts += [_listed("Below their target", matrix.missed), _listed("Not seen", matrix.not_seen)]
    return "\n".join(part for part in parts if part)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows))
    return "".join(f"  {line.rstrip()}\n" for line in lines)


def _listed(title: str, lines: Sequence[str]) -> str:
    return "".join([f"{title}\n", *(f"  - {line}\n" for line in lines)]) if lines else ""


def _cell(one: Cell) -> list[str]:
    shares = (f"{one['recall']:.2f}", f"{one['wrong']:.2f}")
    return [one["planted"], one["dose"], str(one["trials"]), *shares, _named(one["named"])]


def _target(one: Target) -> list[str]:
    return [
        one["title"],
        f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]",
        f"{'<=' if one['at_most'] else '>='} {one['bound']:.2f}",
        f"{one['events']} of {one['trials']}",
        "met" if one["met"] else "MISSED",
    ]


def _named(found: Sequence[Named]) -> str:
    shown = ", ".join(f"{one['causes']} {one['trials']}" for one in found[:SHOWN])
    return shown + (f", {len(found) - SHOWN} others" if len(found) > SHOWN else "")
