"""A cell on another machine than the one that planned it: does it compute the same there, and what is it shown?"""

from dataclasses import replace

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.engines.hardware.visible_gpus import shown_by
from rlaudit.errors import NotFinished


def check_machine(cell: Cell, accelerator: Accelerator) -> None:
    """Go on only where the cell computes here what it would where it was planned. Raises NotFinished otherwise."""
    planned = cell.identity.get("accelerator")
    here = accelerator_identity(accelerator)
    if planned is None or planned == here:
        return
    differ = sorted(name for name in {*planned, *here} if planned.get(name) != here.get(name))
    raise NotFinished(
        f"the cell {cell.key} was planned for another machine: {'; '.join(_apart(planned, here, differ))}",
        "Run it on one like that, or plan the run again here.",
    )


def on_gpus_of(cell: Cell, accelerator: Accelerator) -> Cell:
    """The cell shown the GPUs of this machine instead of those of the machine that planned it."""
    if not accelerator.devices:
        return cell
    return replace(cell, variables={**cell.variables, **shown_by(accelerator.devices)})


def _apart(planned: dict[str, object], here: dict[str, object], names: list[str]) -> list[str]:
    return [f"{name} {planned.get(name)}, here {here.get(name)}" for name in names]
