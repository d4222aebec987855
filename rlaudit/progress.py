"""What is going on, on stderr: stdout belongs to the report.

On a terminal the step in progress is one live line; piped, every finished step is a plain line.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status


class Progress:
    """A place to say what is happening. `quiet` says nothing at all."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self._status: Status | None = None

    def note(self, text: str) -> None:
        """One finished thing, on a line that stays."""
        self._console.print(escape(text))

    def update(self, text: str) -> None:
        """What the step in progress is doing now; not kept."""
        if self._status is not None:
            self._status.update(escape(text))

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show `text` while a step runs."""
        if not self._console.is_terminal:
            yield
            return
        self._status = self._console.status(escape(text))
        try:
            with self._status:
                yield
        finally:
            self._status = None


def seconds_since(started: float) -> str:
    """Elapsed time since `time.monotonic()` gave `started`, as people read it."""
    seconds = time.monotonic() - started
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
