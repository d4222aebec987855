"""Documents for a cell, and their secrets in a separate file.

job.json and environment.json stay in the cell's folder. `secrets.json`, which only this user can read, is removed as
soon as the worker has read it, and at the latest when the cell has ended.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlaudit.files.parse_json import parse_json
from rlaudit.files.write_atomically import write_atomically
from rlaudit.secrets import take_out

SECRETS = "secrets.json"


def hand_over(cell: Path, name: str, document: Mapping[str, Any]) -> None:
    """Write `cell`/`name` for the worker, which puts the secrets back."""
    public, taken = take_out(dict(document))
    write_atomically(cell / name, json.dumps(public).encode())
    file = cell / SECRETS
    secrets = parse_json(file.read_text(encoding="utf-8")) if file.exists() else {}
    secrets.pop(name, None)
    if taken:
        secrets[name] = taken
    file.unlink(missing_ok=True)
    if secrets:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(secrets, stream)


def forget(cell: Path) -> None:
    """Remove the secrets of a cell that has ended, or was never started."""
    (cell / SECRETS).unlink(missing_ok=True)
