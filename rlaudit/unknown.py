"""The third value: neither known nor unset."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unknown:
    """A value that is not known from the file alone."""

    # Why: `$BATCH is set nowhere in this file`.
    reason: str
    # All possible values, if they are known.
    among: tuple[Any, ...] = ()
    # Whether the file is a program, and a run of it decides the value.
    by_run: bool = False
    # The fact that would settle it, if `reason` has more than that.
    hangs_on: str = ""
    # A variable of the environment that decides it, and the value without that variable.
    at_default: tuple[str, Any] | None = None

    @property
    def fact(self) -> str:
        """The fact that would settle this value, and with it all unknown values with the same fact."""
        return self.hangs_on or self.reason

    def __bool__(self) -> bool:
        raise TypeError(f"an unknown value is neither true nor false: {self.reason}")
