"""The confusion matrix of a self-test, from its trials."""

from collections.abc import Sequence

from selftest.blind import CLEAN

from evidence.selftest.confusion import Cell, Confusion, Target
from evidence.selftest.engines.engine_trial import EngineTrial
from evidence.selftest.matrix import Cell as ReportedCell
from evidence.selftest.matrix import Matrix
from evidence.selftest.matrix import Target as ReportedTarget


def document_of(confusion: Confusion) -> Matrix:
    """All of it, with the targets."""
    return Matrix(
        confusion.met,
        f"{sum(len(cell.trials) for cell in confusion.cells)} blind trials in {len(confusion.cells)} cells on the "
        f"{confusion.generator} generator",
        [_cell(cell) for cell in confusion.cells],
        [reported_target(target) for target in confusion.targets],
        [
            f"{cell.label.name} ({_doses(cell)}): recall {cell.recall:.2f} < {bound:.2f}"
            for cell, bound in confusion.short_cells
        ],
        ["not planted here: what only an engine can do (compiled graphs, kernels, weight updates); see --engines"],
    )


def document_of_engines(trials: Sequence[EngineTrial], not_planted: Sequence[str]) -> Matrix:
    """Of plants in real engines. `not_planted`: what was left out, and why."""
    right = sum(trial.right for trial in trials)
    return Matrix(
        all(trial.right for trial in trials),
        f"{right} of {len(trials)} plants in real engines named exactly",
        [_engine(trial) for trial in trials],
        [],
        [f"{trial.name}: engine failed: {trial.failure}" for trial in trials if trial.found is None],
        not_planted,
    )


def _cell(cell: Cell) -> ReportedCell:
    return {
        "planted": cell.label.name,
        "dose": _doses(cell),
        "trials": len(cell.trials),
        "recall": cell.recall,
        "wrong": cell.wrong,
        "named": [{"causes": causes, "trials": count} for causes, count in cell.named.most_common()],
    }


def _engine(trial: EngineTrial) -> ReportedCell:
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


def reported_target(target: Target) -> ReportedTarget:
    """With its interval."""
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
