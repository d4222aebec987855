"""A cell read from its files (cell.describe) and run on another machine than the one that planned it: by `rlaudit cell
run`, and on the nodes of a cluster.

Data is taken from the files, and code from the rlaudit that reads them, whose scripts must be those that the cell is
named after.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import DESCRIPTION, IDENTITY, JOB, Cell
from rlaudit.engines.cells.launch import PACKAGE
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.engines.hardware.visible_gpus import shown_by
from rlaudit.errors import NotFinished, UsageError
from rlaudit.parse_json import parse_json
from rlaudit.secrets import put_back

AGAIN = "The ablate command of the run runs it."


def read_described(directory: Path, secrets: Sequence[Any] = ()) -> Cell:
    """Return the cell that is described in its folder, with the secrets that were left out.

    Raises UsageError if none is described there, NotFinished if it is of another rlaudit or lacks its secrets.
    """
    try:
        told = {name: parse_json((directory / name).read_bytes()) for name in (JOB, IDENTITY, DESCRIPTION)}
        identity = told.pop(IDENTITY)
        put_back(told, list(secrets))
        started = told[DESCRIPTION]
        refusal = started["refusal"]
        cell = Cell(
            job=told[JOB],
            command=tuple(started["command"]),
            variables=started["variables"],
            timeout_seconds=float(started["timeout_seconds"]),
            identity=identity,
            sources=tuple(PACKAGE / source for source in started["sources"]),
            refusal=None if refusal is None else re.compile(*refusal),
            writes=tuple(map(Path, started["writes"])),
            gpus=started["gpus"],
            timed=bool(started["timed"]),
        )
        key = cell.key
    except FileNotFoundError as error:
        raise UsageError(f"{directory} describes no cell: {error.filename} is missing", AGAIN) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotFinished(f"{directory} describes no cell that this rlaudit understands", AGAIN) from error
    if started["secrets"] != len(secrets):
        raise NotFinished(f"the cell {directory.name} needs secrets, which are kept nowhere", AGAIN)
    if key != directory.name:
        raise NotFinished(
            f"the cell {directory.name} would be {key} here: this rlaudit has other scripts than that which planned it",
            "Install the release that planned the run.",
        )
    return cell


def check_machine(cell: Cell, accelerator: Accelerator) -> None:
    """Go on only if the cell computes here what it would where it was planned. Raises NotFinished otherwise."""
    planned = cell.identity.get("accelerator")
    here = accelerator_identity(accelerator)
    if planned is None or planned == here:
        return
    differ = sorted(name for name in {*planned, *here} if planned.get(name) != here.get(name))
    apart = "; ".join(f"{name} {planned.get(name)}, here {here.get(name)}" for name in differ)
    raise NotFinished(
        f"the cell {cell.key} was planned for another machine: {apart}",
        "Run it on one like that, or plan the run again here.",
    )


def on_gpus_of(cell: Cell, accelerator: Accelerator) -> Cell:
    """Return the cell shown the GPUs of this machine instead of those of the machine that planned it."""
    if not accelerator.devices:
        return cell
    return replace(cell, variables={**cell.variables, **shown_by(accelerator.devices)})
