"""The key under which `rlaudit record --redact` hashes: one for each user and machine, in no recording.

It lies in the user's data folder, readable by its owner alone. Processes of a training are given its path in a variable
that is not recorded. Recordings that were redacted under one key can be held against each other; without the key no
hash can be traced back, with it a guess can be tested.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_data_path

from rlaudit.errors import NotFinished
from rlaudit.recorder.shipped.rlaudit_redaction import KEY_NAME, VARIABLE, Redaction

BYTES = 32


def key_variables() -> Mapping[str, str]:
    """Return the variable by which processes find the key, which is made if there is none.

    Raises NotFinished for a key that cannot be read or made.
    """
    path = _path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(secrets.token_hex(BYTES) + "\n")
        except FileExistsError:
            if len(bytes.fromhex(path.read_text(encoding="ascii").strip())) != BYTES:
                raise ValueError("it is cut off") from None
    except (OSError, ValueError) as error:
        raise NotFinished(
            f"the key for --redact cannot be used: {path}: {error}",
            "remove the file for a new key; recordings under the old one are then no longer comparable with new ones",
        ) from error
    return {VARIABLE: str(path)}


def rules_under(name: str | None) -> Redaction | None:
    """Return the rules under the user's key, if it is the one that a recording names; None if it is not here."""
    try:
        key = bytes.fromhex(_path().read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return None
    rules = Redaction(key, (), ()) if len(key) == BYTES else None
    return rules if rules is not None and rules.hidden(KEY_NAME) == name else None


def _path() -> Path:
    return user_data_path("rlaudit") / "redaction.key"
