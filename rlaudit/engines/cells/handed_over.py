"""Documents for a cell, without their secrets, which reach its worker in a file of their own.

job.json and environment.json stay where the run is kept; `secrets.json`, which only this user can read, is removed as
soon as the worker has read it, and in any case when the cell has ended.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlaudit.parse_json import parse_json
from rlaudit.secrets import take_out
from rlaudit.write_atomically import write_atomically

SECRETS = "secrets.json"


def hand_over(cell: Path, name: str, document: Mapping[str, Any]) -> None:
    """Write `cell`/`name` for the worker, which gets the document as it is given here."""
    public, taken = take_out(dict(document))
    write_atomically(cell / name, json.dumps(public).encode())
    file = cell / SECRETS
    told = parse_json(file.read_text(encoding="utf-8")) if file.exists() else {}
    told.pop(name, None)
    if taken:
        told[name] = taken
    file.unlink(missing_ok=True)
    if told:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as secrets:
            json.dump(told, secrets)


def forget(cell: Path) -> None:
    """Remove the secrets of a cell that has ended, or was never started."""
    (cell / SECRETS).unlink(missing_ok=True)
