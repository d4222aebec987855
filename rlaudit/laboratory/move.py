"""The level of a factor to try on a config that moves from one release to another.

Where the migration moves the factor, what answers is the level of before, which is then part of the way back to it;
where it does not, another level than the one that the new release would run.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rlaudit.inspection.audit import Audit


@dataclass(frozen=True)
class Move:
    """to_reference: whether the level is what ran before the migration."""

    level: str
    to_reference: bool = False


def switched(audit: Audit, setting: str) -> Move:
    """For a factor that turns one engine argument on and off."""
    before, after = audit.before.value(setting), audit.after.value(setting)
    level = "off" if after is True else "on"
    return Move(level, isinstance(before, bool | None) and bool(before) == (level == "on") and before != after)


def always(level: str) -> Callable[[Audit, str], Move]:
    """For a factor of which one level tells most, whatever the config says."""
    return lambda audit, setting: Move(level)


def never(audit: Audit, setting: str) -> None:
    """For a factor that does not belong into the experiment of a config."""
