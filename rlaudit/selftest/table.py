"""A self-test in plain text: the confusion matrix, cell by cell, the targets, and every miss."""

from collections.abc import Iterator

from rlaudit.selftest.blind import all_faults
from rlaudit.selftest.confusion import Cell, Confusion
from rlaudit.selftest.plant import Dose

SHOWN = 3


def text_of(confusion: Confusion) -> str:
    """Everything, a line each."""
    return "\n".join(_lines(confusion)) + "\n"


def _lines(confusion: Confusion) -> Iterator[str]:
    trials = sum(len(cell.trials) for cell in confusion.cells)
    yield f"self-test on the {confusion.generator} generator: {trials} blind trials in {len(confusion.cells)} cells"
    yield ""
    yield f"{'planted':44} {'dose':16} {'trials':>6} {'recall':>7} {'wrong':>6}  named"
    for cell in confusion.cells:
        yield _row(cell)
    yield ""
    for target in confusion.targets:
        low, high = target.interval
        sign = "<=" if target.at_most else ">="
        said = "met" if target.met else "MISSED"
        yield (
            f"{said:7} {target.title}: {target.value:.3f} [{low:.3f}, {high:.3f}], target {sign} {target.bound:.2f}, "
            f"{target.events} of {target.trials} trials"
        )
    for cell, bound in confusion.short_cells:
        yield f"below its target: {cell.label.name} ({_doses(cell)}): recall {cell.recall:.2f} < {bound:.2f}"
    yield "not planted here: what only an engine can do (compiled graphs, kernels, weight updates); see --engines"


def _row(cell: Cell) -> str:
    named = ", ".join(f"{name} {count}" for name, count in cell.named.most_common(SHOWN))
    return f"{cell.label.name:44} {_doses(cell):16} {len(cell.trials):6} {cell.recall:7.2f} {cell.wrong:6.2f}  {named}"


def _doses(cell: Cell) -> str:
    return ", ".join(dose.name.lower() for dose in cell.label.doses) or "-"


def doses_in_words(cause: str) -> str:
    """What low, middle and top mean for one cause."""
    return "; ".join(f"{dose.name.lower()}: {all_faults()[cause].doses[dose]}" for dose in Dose)
