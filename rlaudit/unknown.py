"""The third value: neither known nor unset."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unknown:
    """A value that is not known from the file alone, and why: `$BATCH is set nowhere in this file`.

    among: all the values that it can be, if that much is known.
    """

    reason: str
    among: tuple[Any, ...] = ()
    # Whether the file is a program, and a run of it decides the value.
    by_run: bool = False
    # The one fact that would settle it, if `reason` says more than that.
    hangs_on: str = ""

    @property
    def fact(self) -> str:
        """What would settle this value: all unknown values with the same fact are settled by it at once."""
        return self.hangs_on or self.reason

    def __bool__(self) -> bool:
        raise TypeError(f"an unknown value is neither true nor false: {self.reason}")
