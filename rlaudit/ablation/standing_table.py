"""The verdict as it forms, on a terminal: each arm, what it is for and its figures, and how the layers stand."""

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rlaudit.ablation.as_it_forms import SoFar
from rlaudit.laboratory.studies.arms.plan import Arm, Plan, Role
from rlaudit.statistics.estimate import figure

FOR = {
    Role.RECORDED: "what the run got",
    Role.REFERENCE: "how far today's engine is",
    Role.CANDIDATE: "the engine to move to, as it comes",
    Role.CANDIDATE_AGAIN: "the noise of the candidate",
    Role.FIRST: "does this alone bring it back?",
    Role.PARITY: "do all of them bring it back?",
    Role.PARITY_AGAIN: "the noise of parity",
    Role.LAST: "is this one needed?",
    Role.EXTRA: "beside the design",
}
METRICS = {"mean_ratio_minus_one": "mean ratio - 1", "k3": "k3 (nats)"}
WAITS = "to come"
# Columns of a terminal that hold two figures with their intervals, an arm and what it is for.
EXPLAINS_FROM = 120


def standing_table(known: SoFar, plan: Plan, width: int) -> Group:
    """Return the table of a run under way, and its layers below it; names give way to figures on a narrow terminal."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    explains = width >= EXPLAINS_FROM
    for title in ("arm", *(["what it is for"] if explains else [])):
        table.add_column(title, no_wrap=True, overflow="ellipsis", ratio=1)
    for title in METRICS.values():
        table.add_column(title, no_wrap=True, overflow="ellipsis")
    for block in plan.blocks:
        for arm in block.arms:
            purpose = [FOR[arm.role]] if explains else []
            table.add_row(arm.name, *purpose, *_figures(arm, known), style="" if _ended(arm, known) else "dim")
    return Group(table, *(Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in known.layer_lines))


def _ended(arm: Arm, known: SoFar) -> bool:
    return (arm.block, arm.name) in known.diagnosis.run.arms


def _figures(arm: Arm, known: SoFar) -> Iterator[str]:
    """Yield a cell for each metric: the figure, or why there is none."""
    measured = {
        name: one
        for block in known.diagnosis.blocks
        if block.plan.name == arm.block
        for name, one in block.measured.items()
    }.get(arm.name)
    finished = known.diagnosis.run.arms.get((arm.block, arm.name))
    for metric in METRICS:
        if measured is not None:
            found = measured.measurements[metric]
            yield figure(found.value, found.low, found.high)
        else:
            yield WAITS if finished is None else finished.status
