"""What Linux says of a running process: proc(5). A process that has ended, or is another user's, says nothing."""

import os
from pathlib import Path


def command_line(pid: int) -> bytes:
    """Return a process's words, each with a zero byte behind it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def words_of(line: bytes) -> tuple[str, ...]:
    """Return the words of a command line."""
    return tuple(line.decode(errors="replace").rstrip("\0").split("\0"))


def environment_of(pid: int) -> dict[str, str] | None:
    """Return the variables that a process was started with, without its own changes."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs}


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None for a process that has ended."""
    try:
        # The command's name may hold spaces and brackets: what follows its last bracket is safe to split.
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
