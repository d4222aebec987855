"""What is going on, on stderr: stdout belongs to the report.

On a terminal the step in progress is live: what is known so far, what the step does, how many are done and how long
the rest will take, and the last line of its log. Piped, every finished step is a plain line with the time.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.text import Text

from rlaudit.secrets import mask
from rlaudit.text.printable import one_line, printable

# Enough for the last line of any log.
_TAIL_BYTES = 4096


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Say no more once its reader has left; Rich would end the run with the exit code of a mismatch."""
        self.quiet = True


class Progress:
    """Shows what is happening. `quiet` shows nothing at all."""

    def __init__(self, quiet: bool = False) -> None:
        # A user who closed stderr wants no progress.
        self._console = _Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet or sys.stderr is None)
        self._doing = ""
        self._log: Path | None = None
        self._spinner = Spinner("dots")
        self._steps = Steps(0)
        self._standing: RenderableType | None = None

    def note(self, text: str) -> None:
        """Print one finished thing, on a line that stays."""
        clock = "" if self._console.is_terminal else time.strftime("%H:%M:%S ")
        # If nothing can be printed, the run goes on all the same.
        with suppress(OSError):
            self._console.print(escape(f"{clock}{printable(mask(text))}"))

    def update(self, text: str) -> None:
        """Show what the step in progress is doing now; it is not kept."""
        self._doing = text

    def stand(self, made: Callable[[int], RenderableType]) -> bool:
        """Show a result so far above each step, until the next call. made: makes it for so many columns.

        Returns whether it is shown: a pipe has no place for it.
        """
        if not self._console.is_terminal:
            return False
        self._standing = made(self._console.width)
        return True

    def expect(self, steps: int) -> None:
        """Expect so many calls of `done`."""
        self._steps = Steps(steps)

    def expect_more(self, steps: int) -> None:
        """Count further steps among those that `done` will be called for."""
        self._steps.expected += steps

    def done(self, seconds: float | None = None, tokens_per_second: float | None = None) -> None:
        """Count one of the expected steps. seconds: what it took; None if nothing had to be run for it."""
        self._steps.done(seconds, tokens_per_second)

    @contextmanager
    def step(self, text: str, log: Path | None = None) -> Iterator[None]:
        """Show `text` while a step runs, and the last line that its `log` holds by then."""
        self._doing, self._log = text, log
        if not self._console.is_terminal or self._console.quiet:
            yield
            return
        with Live(get_renderable=self._shown, console=self._console, transient=True, refresh_per_second=5):
            yield

    def _shown(self) -> RenderableType:
        self._spinner.update(text=_cut(self._doing))
        lines: list[RenderableType] = [*([self._standing, ""] if self._standing else []), self._spinner]
        if status := self._steps.status():
            lines.append(_cut(f"  {status}", "dim"))
        if self._log is not None and (last := last_line(self._log)):
            lines.append(_cut(f"  log: {last}", "dim"))
        return Group(*lines)


@dataclass
class Steps:
    """How far a run of `expected` steps is. Time left is the mean of the steps that had to be run, for those left."""

    expected: int
    ended: int = 0
    ran: int = 0
    seconds: float = 0.0
    tokens_per_second: float | None = None
    started: float = field(default_factory=time.monotonic)

    def done(self, seconds: float | None, tokens_per_second: float | None) -> None:
        """Count one more step."""
        self.ended += 1
        if seconds is not None:
            self.ran += 1
            self.seconds += seconds
        self.tokens_per_second = tokens_per_second or self.tokens_per_second

    def status(self) -> str:
        """Return the state in one line; "" if no steps are expected."""
        if not self.expected:
            return ""
        parts = [f"{self.ended} of {self.expected} done", f"{seconds_since(self.started)} gone"]
        if self.ran:
            left = self.seconds / self.ran * max(self.expected - self.ended, 0)
            parts.append(f"about {readable(left)} left")
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:.0f} tokens/s in the last arm")
        return ", ".join(parts)


def last_line(log: Path) -> str:
    """Return the last line of a log that has text, safe to print; "" if none has yet."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    # Bars that are drawn over and over end with a carriage return.
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return one_line(str(printable(lines[-1]))) if lines else ""


def seconds_since(started: float) -> str:
    """Return the time since `time.monotonic()` gave `started`, as people read it."""
    return readable(time.monotonic() - started)


def readable(seconds: float) -> str:
    """Return seconds as people read them."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _cut(text: str, style: str = "") -> Text:
    """Cut it to one line of the terminal: a live display that wraps would leave pieces behind."""
    return Text(str(printable(mask(text))), style=style, no_wrap=True, overflow="ellipsis")
