"""Who else may write in a folder, or put another one in its place.

A folder is as safe as all above it: the owner of one, and each user who may write in it, can rename what it holds,
unless it has the sticky bit (/tmp). Root may do everything. In a container whose users are mapped, what belongs to a
user outside of it has one owner, the overflow user, who is no user inside.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rlaudit.errors import UsageError

_USERS = Path("/proc/self/uid_map")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def is_private(folder: Path) -> bool:
    """Return whether only this user and root may write in a folder that exists, or put another in its place."""
    trusted, real = _trusted(), Path(os.path.realpath(folder))
    for place, status in _places(folder):
        sticky = place != real and status.st_mode & stat.S_ISVTX
        is_writable = status.st_mode & _OTHERS and not sticky and not stat.S_ISLNK(status.st_mode)
        if status.st_uid not in trusted or is_writable:
            return False
    return True


def refuse_planted(folder: Path) -> None:
    """Raise UsageError if any user may have put a folder there, as it is now or when it is made.

    Others that may write in it are no reason: a project may belong to a group, a mount to a user outside a container.
    """
    trusted = _trusted()
    for place, status in _places(folder):
        if stat.S_ISLNK(status.st_mode):
            if status.st_uid not in trusted:
                raise UsageError(f"{place} is a link of another user's", "name the folder that it leads to")
        elif status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise UsageError(
                f"every user may write in {place}, and replace what others put there",
                f"chmod o-w or chmod +t {place}, or name another folder",
            )


def _places(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield a folder, all above it, links on the way and where these lead, as far as they exist."""
    for place in (folder, *folder.parents):
        if os.path.lexists(place):
            yield place, place.lstat()
            if place.is_symlink() and place.exists():
                yield from _places(Path(os.path.abspath(place.parent / place.readlink())))  # noqa: PTH100 - a link at a time


def _trusted() -> set[int]:
    """Return the users that are trusted: this one, root, and users outside of this container's if they have no name."""
    if not _USERS.exists():  # no Linux
        return {0, os.geteuid()}
    unknown = int(Path("/proc/sys/kernel/overflowuid").read_text())
    users = [tuple(map(int, line.split())) for line in _USERS.read_text().splitlines()]
    is_inside = any(first <= unknown < first + count for first, _, count in users)
    return {0, os.geteuid()} | (set() if is_inside else {unknown})
