"""What a self-test says, as tables that every format for people shares."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlaudit.report.report_format import Document

CELLS = ("planted", "dose", "trials", "recall", "wrong", "named")
TARGETS = ("target", "measured [95 % interval]", "wanted", "trials", "")
SHOWN = 3


def headline(document: Document) -> str:
    """How much was planted."""
    return f"self-test: {document['description']}"


def cells(document: Document) -> list[list[str]]:
    """A row for each cell of the confusion matrix."""
    return [
        [
            one["planted"],
            one["dose"],
            str(one["trials"]),
            f"{one['recall']:.2f}",
            f"{one['wrong']:.2f}",
            _named(one["named"]),
        ]
        for one in document["selftest"]["cells"]
    ]


def targets(document: Document) -> list[list[str]]:
    """A row for each figure that has to be reached."""
    return [
        [
            one["title"],
            f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]",
            f"{'<=' if one['at_most'] else '>='} {one['bound']:.2f}",
            f"{one['events']} of {one['trials']}",
            "met" if one["met"] else "MISSED",
        ]
        for one in document["selftest"]["targets"]
    ]


def missed(document: Document) -> Sequence[str]:
    """Cells below their target, and engines that failed."""
    lines: Sequence[str] = document["selftest"]["missed"]
    return lines


def _named(found: Sequence[Mapping[str, Any]]) -> str:
    shown = ", ".join(f"{one['causes']} {one['trials']}" for one in found[:SHOWN])
    return shown + (f", {len(found) - SHOWN} others" if len(found) > SHOWN else "")
