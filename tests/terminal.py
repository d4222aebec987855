"""A terminal of so many columns and rows: what is written to it is read as it comes, little of it waits there."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# What a terminal is told by the one that the tests are started from.
WITHOUT = {"COLUMNS", "LINES", "PAGER", "NO_COLOR", "FORCE_COLOR"}


class Terminal:
    """`end` is where a program writes; `text()` closes it, and says what was written."""

    def __init__(self, columns: int = 0, rows: int = 0) -> None:
        self._ours, self.end = pty.openpty()
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._read: list[bytes] = []
        self._reader = threading.Thread(target=self._keep)
        self._reader.start()

    def _keep(self) -> None:
        # Linux answers with an error once the other end is closed.
        with suppress(OSError):
            while part := os.read(self._ours, 65536):
                self._read.append(part)
        os.close(self._ours)

    def text(self) -> str:
        os.close(self.end)
        self._reader.join()
        return b"".join(self._read).decode().replace("\r\n", "\n")


def on_a_terminal(
    *words: str,
    columns: int = 90,
    rows: int = 1000,
    variables: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stderr: int | None = None,
) -> tuple[str, int]:
    """What rlaudit prints on a terminal, and its exit code. stderr: where errors go, if not there."""
    terminal = Terminal(columns, rows)
    environment = {name: value for name, value in os.environ.items() if name not in WITHOUT}
    environment |= {"TERM": "xterm-256color", **(variables or {})}
    child = subprocess.Popen(
        [sys.executable, "-m", "rlaudit", *words],
        stdout=terminal.end,
        stderr=terminal.end if stderr is None else stderr,
        env=environment,
        cwd=cwd,
    )
    code = child.wait()
    return terminal.text(), code
