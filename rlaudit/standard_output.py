"""Standard output as commands need it: either everything is written, or an error is raised.

The reader may leave early, as `head` does: then the rest is discarded, and the exit code stays the same.
"""

import os
import sys

from rlaudit.errors import NotFinished

_ELSEWHERE = "--output FORMAT:PATH writes a report to a file"


def to_stdout(text: str) -> None:
    """Write text. Raises NotFinished if standard output is closed, full or broken."""
    if sys.stdout is None:
        raise NotFinished("there is no standard output to write to: it is closed", _ELSEWHERE)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _into_nothing()
    except OSError as error:
        _into_nothing()
        raise NotFinished(f"standard output: {error.strerror}", _ELSEWHERE) from error


def _into_nothing() -> None:
    """Discard what Python would write when it ends, and complain if it cannot."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
