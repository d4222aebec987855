"""How wide the terminal on standard output is."""

import os
import shutil
import sys

# Of a report that is coloured although it is piped (FORCE_COLOR).
FORCED = 100


def columns() -> int | None:
    """Return the columns of the terminal on stdout, or None if it is none.

    COLUMNS is obeyed. A terminal without a size (0 columns, as under `script`, `docker run -t` and `ssh -tt`) has 80.
    """
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size(fallback=(80, 24)).columns


def terminal_width() -> int | None:
    """Return the width of a coloured report; None if it is piped, or if colours are not wanted or not possible.

    NO_COLOR and FORCE_COLOR are obeyed, and a dumb terminal has no colours.
    """
    if sys.stdout is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") in {"dumb", "unknown"}:
        return None
    return columns() or (FORCED if os.environ.get("FORCE_COLOR") else None)
