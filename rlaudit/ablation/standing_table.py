"""The verdict as it forms, on a terminal: each arm with its purpose and figures, then the layers."""

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rlaudit.ablation.as_it_forms import SoFar
from rlaudit.laboratory.studies.arms.plan import Arm, Plan, Role
from rlaudit.report.figures import TELLING, TITLES, short_name
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
WAITS = "to come"
# Columns of a terminal that hold an arm, its purpose, and two figures with their intervals.
EXPLAINS_FROM = 120


def standing_table(standing: SoFar, plan: Plan, width: int) -> Group:
    """Return the table of a run under way, and its layers below it. A narrow terminal cuts names, not figures."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    explains = width >= EXPLAINS_FROM
    for title in ("arm", *(["what it is for"] if explains else [])):
        table.add_column(title, no_wrap=True, overflow="ellipsis", ratio=1)
    for metric in TELLING:
        table.add_column(TITLES[metric], no_wrap=True, overflow="ellipsis")
    for block in plan.blocks:
        for arm in block.arms:
            purpose = [FOR[arm.role]] if explains else []
            has_ended = (arm.block, arm.name) in standing.diagnosis.run.arms
            table.add_row(short_name(arm.name), *purpose, *_figures(arm, standing), style="" if has_ended else "dim")
    return Group(table, *(Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in standing.layer_lines))


def _figures(arm: Arm, standing: SoFar) -> Iterator[str]:
    """Yield a cell for each metric: the figure, or the arm's status."""
    blocks = {block.plan.name: block for block in standing.diagnosis.blocks}
    measured = blocks[arm.block].measured.get(arm.name) if arm.block in blocks else None
    finished = standing.diagnosis.run.arms.get((arm.block, arm.name))
    for metric in TELLING:
        if measured is not None:
            measurement = measured.measurements[metric]
            yield figure(measurement.value, measurement.low, measurement.high)
        else:
            yield WAITS if finished is None else finished.status
