"""A self-test as the document `rlaudit-report/1`; its own part is under the key `selftest`."""

from collections.abc import Mapping, Sequence
from typing import Any

import rlaudit
from rlaudit.selftest.blind import CLEAN
from rlaudit.selftest.confusion import Cell, Confusion, Target
from rlaudit.selftest.engines.engine_trial import EngineTrial

SCHEMA = "rlaudit-report/1"


def document_of(confusion: Confusion) -> dict[str, Any]:
    """JSON-able; exit code 1 where a target is missed."""
    return _document(
        confusion.met,
        f"{sum(len(cell.trials) for cell in confusion.cells)} blind trials in {len(confusion.cells)} cells on the "
        f"{confusion.generator} generator",
        [_cell(cell) for cell in confusion.cells],
        [_target(target) for target in confusion.targets],
        [
            f"{cell.label.name} ({_doses(cell)}): recall {cell.recall:.2f} < {bound:.2f}"
            for cell, bound in confusion.short_cells
        ],
        ["not planted here: what only an engine can do (compiled graphs, kernels, weight updates); see --engines"],
    )


def document_of_engines(trials: Sequence[EngineTrial], not_planted: Sequence[str]) -> dict[str, Any]:
    """JSON-able; exit code 1 where a plant is not named exactly. `not_planted`: what was left out, and why."""
    right = sum(trial.right for trial in trials)
    return _document(
        all(trial.right for trial in trials),
        f"{right} of {len(trials)} plants in real engines named exactly",
        [_engine(trial) for trial in trials],
        [],
        [f"{trial.name}: engine failed: {trial.failure}" for trial in trials if trial.found is None],
        not_planted,
    )


def _document(
    met: bool,
    description: str,
    cells: Sequence[Mapping[str, Any]],
    targets: Sequence[Mapping[str, Any]],
    missed: Sequence[str],
    not_seen: Sequence[str],
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "rlaudit": rlaudit.__version__,
        "command": "selftest",
        "exit_code": 0 if met else 1,
        "description": description,
        "versions": {"from": None, "to": None},
        "findings": [],
        "settings": [],
        "arms": [],
        "effects": [],
        "layers": [],
        "not_seen": list(not_seen),
        "selftest": {"cells": list(cells), "targets": list(targets), "missed": list(missed)},
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "planted": cell.label.name,
        "dose": _doses(cell),
        "trials": len(cell.trials),
        "recall": cell.recall,
        "wrong": cell.wrong,
        "named": [{"causes": causes, "trials": count} for causes, count in cell.named.most_common()],
    }


def _engine(trial: EngineTrial) -> dict[str, Any]:
    causes = set(trial.causes)
    named = frozenset() if trial.found is None else trial.found.names
    said = (
        "engine failed"
        if trial.found is None
        else " + ".join(sorted(named)) or f"{CLEAN} ({trial.found.verdict.value})"
    )
    return {
        "planted": " + ".join(trial.causes) or CLEAN,
        "dose": trial.name,
        "trials": 1,
        "recall": float(trial.found is not None and causes <= named),
        "wrong": float(bool(named - causes)),
        "named": [{"causes": said, "trials": 1}],
    }


def _target(target: Target) -> dict[str, Any]:
    low, high = target.interval
    return {
        "title": target.title,
        "value": target.value,
        "low": low,
        "high": high,
        "bound": target.bound,
        "at_most": target.at_most,
        "met": target.met,
        "events": target.events,
        "trials": target.trials,
    }


def _doses(cell: Cell) -> str:
    return ", ".join(dose.name.lower() for dose in cell.label.doses) or "-"
