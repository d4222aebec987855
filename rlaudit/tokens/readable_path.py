"""Whether a path is a file or folder that can be read to its end: pipes, devices and the kernel's own files cannot."""

import stat
from pathlib import Path

from rlaudit.errors import UsageError

KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Files there are made while they are read, by the kernel: some never end, some wait for ever.
KERNEL_FILES = ("/proc", "/sys", "/dev")


def check_readable(path: Path) -> None:
    """Raises UsageError for a path that does not exist or cannot be looked at, and for a special file."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except FileNotFoundError as error:
        raise UsageError(f"there is no {path}") from error
    except (OSError, ValueError, RuntimeError) as error:
        # A name too long for the file system, one with a NUL, a circle of links, a folder that is not ours.
        raise UsageError(f"{path} cannot be looked at: {error}", "give a file or a folder") from error
    what = special(path, kind)
    if what:
        raise UsageError(f"{path} is {what}, expected a file or a folder", "copy what it holds into a file")


def special(path: Path, kind: int) -> str:
    """What a path is that is neither a plain file nor a folder, "" for one that is. kind: of its mode."""
    resolved = path.resolve()
    if any(resolved.is_relative_to(folder) for folder in KERNEL_FILES):
        return KINDS.get(kind, "a file of the kernel")
    return KINDS.get(kind, "")
