"""The command that installs an optional package beside this rlaudit, however that was installed."""

import shlex
import sys


def install_beside(*packages: str) -> str:
    """Return a command line. It uses uv, which rlaudit depends on: `uv tool` makes environments without pip."""
    return shlex.join([sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, *packages])
