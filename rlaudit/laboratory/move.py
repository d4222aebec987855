"""The level of a factor to try on a config that moves from one release to another.

If the migration moves the factor, that is the level before it, which is then a step of the way back. If it does not,
that is another level than the one that the new release would run.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rlaudit.inspection.audit import Audit


@dataclass(frozen=True)
class Move:
    """A level to try. to_reference: whether it is what ran before the migration."""

    level: str
    to_reference: bool = False


def switched(audit: Audit, setting: str) -> Move:
    """Return the level to try of a factor that turns one engine argument on and off."""
    before, after = audit.before.value(setting), audit.after.value(setting)
    level = "off" if after is True else "on"
    return Move(level, isinstance(before, bool | None) and bool(before) == (level == "on") and before != after)


def always(level: str) -> Callable[[Audit, str], Move]:
    """Try this level with any config: for a factor of which one level tells most."""
    return lambda audit, setting: Move(level)


def never(audit: Audit, setting: str) -> None:
    """Try no level: for a factor that does not belong into the experiment of a config."""
