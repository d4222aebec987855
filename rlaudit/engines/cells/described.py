"""A cell read from its files (cell.describe), by those who know nothing else of the run: `rlaudit cell run`, and the
nodes of a cluster.

Nothing is pickled: whoever reads a cell takes data from it, and code from its own rlaudit, whose scripts must be those
that the cell is named after.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.cell import DESCRIPTION, IDENTITY, JOB, Cell
from rlaudit.engines.cells.launch import PACKAGE
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.errors import NotFinished, UsageError
from rlaudit.parse_json import parse_json
from rlaudit.secrets import put_back

AGAIN = "The ablate command of the run runs it."


def read_described(directory: Path, secrets: Sequence[Any] = ()) -> Cell:
    """The cell that is described in its folder, with the secrets that were left out.

    Raises UsageError where none is described there, NotFinished where it is of another rlaudit or lacks its secrets.
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
            environment=None if started["environment"] is None else _environment(started),
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


def _environment(started: Mapping[str, Any]) -> Environment:
    told = started["environment"]
    spec = EnvironmentSpec(**{**told["spec"], "command": tuple(told["spec"]["command"])})
    command = tuple(started["command"])
    return Environment(spec, Path(command[0]).parent, command, told["variables"], tuple(told["lock"]))
