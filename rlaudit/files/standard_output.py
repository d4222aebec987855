"""Standard output as commands need it: either everything is written, or an error is raised.

The reader may leave early, as `head` does: then the rest is discarded, and the exit code stays the same.
"""

import codecs
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

from rlaudit.errors import NotFinished

_ELSEWHERE = "--output FORMAT:PATH writes a report to a file"


def take_every_character() -> None:
    """Let standard output and errors write a character that their encoding lacks as its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def utf_8() -> bool:
    """Return whether standard output is in UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None)
    return encoding is None or codecs.lookup(encoding).name == "utf-8"


def in_ascii(text: str) -> str:
    """Return HTML or XML, which says that it is UTF-8, with other characters as their numbers."""
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def everything_written() -> bool:
    """Return whether standard output and errors took what is left to write, or their reader wants no more.

    Python would try again at its end, and exit with 120.
    """
    written = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            _into_nothing(stream)
        except (OSError, ValueError):
            written = stream is sys.stderr and written
            _into_nothing(stream)
    return written


def to_stdout(text: str) -> None:
    """Write text. Raises NotFinished if standard output is closed, full or broken."""
    if sys.stdout is None:
        raise NotFinished("there is no standard output to write to: it is closed", _ELSEWHERE)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _into_nothing(sys.stdout)
    except OSError as error:
        _into_nothing(sys.stdout)
        raise NotFinished(f"standard output: {error.strerror}", _ELSEWHERE) from error


def _into_nothing(stream: TextIO) -> None:
    """Discard what Python would write when it ends, and complain if it cannot."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
