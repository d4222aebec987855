"""A cell that is read from its files (cell.describe), to be run on another machine than the one that planned it.

The nodes of a cluster do that. Data comes from the files, and code from the rlaudit that reads them, whose scripts must
be those that the cell's name was computed from.
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
from rlaudit.files.parse_json import parse_json
from rlaudit.secrets import put_back

AGAIN = "The ablate command of the run runs it."


def read_described(directory: Path, secrets: Sequence[Any]) -> Cell:
    """Return the cell that is described in its folder, with the secrets that were left out.

    Raises UsageError if none is described there, NotFinished if it is of another rlaudit.
    """
    try:
        documents = {name: parse_json((directory / name).read_bytes()) for name in (JOB, IDENTITY, DESCRIPTION)}
        identity = documents.pop(IDENTITY)
        put_back(documents, list(secrets))
        description = documents[DESCRIPTION]
        refusal = description["refusal"]
        cell = Cell(
            job=documents[JOB],
            command=tuple(description["command"]),
            variables=description["variables"],
            timeout_seconds=float(description["timeout_seconds"]),
            identity=identity,
            sources=tuple(PACKAGE / source for source in description["sources"]),
            refusal=None if refusal is None else re.compile(*refusal),
            writes=tuple(map(Path, description["writes"])),
            gpus=description["gpus"],
            timed=bool(description["timed"]),
        )
        key = cell.key
    except FileNotFoundError as error:
        raise UsageError(f"{directory} describes no cell: {error.filename} is missing", AGAIN) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotFinished(f"{directory} describes no cell that this rlaudit understands", AGAIN) from error
    if key != directory.name:
        raise NotFinished(
            f"the cell {directory.name} would be {key} here: this rlaudit has other scripts than that which planned it",
            "Install the release that planned the run.",
        )
    return cell


def check_machine(cell: Cell, accelerator: Accelerator) -> None:
    """Raise NotFinished if the cell was planned for another kind of accelerator than this one."""
    planned = cell.identity.get("accelerator")
    present = accelerator_identity(accelerator)
    if planned is None or planned == present:
        return
    names = sorted(name for name in {*planned, *present} if planned.get(name) != present.get(name))
    differences = "; ".join(f"{name} {planned.get(name)}, here {present.get(name)}" for name in names)
    raise NotFinished(
        f"the cell {cell.key} was planned for another machine: {differences}",
        "Run it on one like that, or plan the run again here.",
    )


def on_gpus_of(cell: Cell, accelerator: Accelerator) -> Cell:
    """Return the cell with the GPUs of this machine instead of those of the machine that planned it."""
    if not accelerator.devices:
        return cell
    return replace(cell, variables={**cell.variables, **shown_by(accelerator.devices)})
