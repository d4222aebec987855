"""The report of a self-test: the confusion matrix, cell by cell, the targets, and every miss."""

from collections.abc import Sequence

from rlaudit.report.outline import Indents, Outline, Section, Table, listed, not_seen
from rlaudit.report.parts.selftest import Cell, Named, Target
from rlaudit.report.report import Report

CELLS = ("planted", "dose", "trials", "recall", "wrong", "named")
TARGETS = ("target", "measured [95 % interval]", "wanted", "trials", "")
SHOWN = 3


def outline(report: Report) -> Outline:
    """In reading order."""
    found = report["selftest"]
    cells, targets = [_cell(one) for one in found["cells"]], [_target(one) for one in found["targets"]]
    return Outline(
        f"self-test: {report.get('description', '')}",
        [
            Section("cells", "What was planted and what was named", [Table(CELLS, cells)]),
            Section("targets", "Targets", [Table(TARGETS, targets)] if targets else []),
            listed("missed", "Below their target", found["missed"]),
            not_seen(report),
        ],
        facts=[f"{sum(one['trials'] for one in found['cells'])} trials"],
        indents=Indents(line=2, table=2),
    )


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
