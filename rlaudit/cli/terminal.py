"""How wide the terminal on standard output is."""

import os
import re
import shutil
import sys

# Of a report that is coloured although it is piped (FORCE_COLOR).
FORCED = 100
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def columns() -> int | None:
    """Return the columns of the terminal on stdout, or None if it is none.

    COLUMNS is obeyed. A terminal without a size (0 columns, as under `script`, `docker run -t` and `ssh -tt`) has 80.
    """
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size(fallback=(80, 24)).columns


def report_width() -> int | None:
    """Return the width of a report: of the terminal, or of a pipe that wants colours all the same (FORCE_COLOR)."""
    return columns() or (FORCED if coloured() and os.environ.get("FORCE_COLOR") else None)


def coloured() -> bool:
    """Return whether standard output has colours: NO_COLOR and FORCE_COLOR are obeyed, a dumb terminal has none."""
    if sys.stdout is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") in {"dumb", "unknown"}:
        return False
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def uncoloured(text: str) -> str:
    """Return the text without the codes that colour it."""
    return _COLOUR.sub("", text)
