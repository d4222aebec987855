"""Learned gates in the form of a framework's own gates: what `curves --export` prints."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.errors import NotFinished

if TYPE_CHECKING:
    from rlaudit.curves.curve import Run
    from rlaudit.curves.learned_gates import GateSet, LearnedGate, Part


@dataclass(frozen=True)
class GateExport:
    """A framework's form of gates."""

    name: str
    # The gates and the new run, None if there is none -> text to paste.
    write: Callable[["GateSet", "Run | None"], str]


def export_named(name: str) -> GateExport:
    """Return the form of a framework that has one."""
    export: GateExport = importlib.import_module(f"rlaudit.report.rendering.exports.{name.replace('-', '_')}").EXPORT
    return export


def gates_of(gates: "GateSet", *parts: "Part") -> "list[LearnedGate]":
    """Return the gates of these numbers of a curve. Raises NotFinished if there is none."""
    chosen = [gate for part in parts for gate in gates.gates if gate.part is part]
    if not chosen:
        raise NotFinished(f"no limit of the {' or the '.join(parts)} is in these gates", "learn them with --gates-from")
    return chosen


def learned_from(gates: "GateSet") -> str:
    """Return how the limits came about, in a sentence."""
    return (
        f"Limits learned by rlaudit from {len(gates.runs)} runs: at most {gates.alpha:.3g} of runs like them leave any "
        f"({100 * gates.confidence:.0f} % sure)."
    )
