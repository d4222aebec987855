"""The user's home, if there is one: a container may run as a user whom its system does not know."""

import os
from pathlib import Path


def expanded(path: str | Path) -> Path:
    """Return the path with `~` replaced; unchanged if that home is not known."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises for a user without a home
