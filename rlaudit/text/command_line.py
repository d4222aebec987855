"""The command line of this process, as a report repeats it, so that another can run it again."""

import shlex
from collections.abc import Sequence

from rlaudit.secrets import mask_text

_words: list[str] = []


def remember(words: Sequence[str]) -> None:
    """Keep what came after `rlaudit`."""
    _words[:] = words


def command_line() -> str:
    """Return `rlaudit ablate v0-to-v1`, secrets hidden; empty if no command line was read."""
    return mask_text(shlex.join(["rlaudit", *_words])) if _words else ""
