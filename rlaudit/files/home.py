"""The user's home, if it is known: a container may run as a user that its system does not know."""

import os
from pathlib import Path


def expanded(path: str | Path) -> Path:
    """Return the path with `~` replaced; unchanged if that home is not known."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises for a user without a home
