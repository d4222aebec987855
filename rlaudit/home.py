"""The user's home, where there is one: a container may run as a user whom its system does not know."""

import os
from pathlib import Path


def expanded(path: str | Path) -> Path:
    """The path with `~` replaced; as it is where nobody knows whose home that is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises for a user without a home
