"""How much a finding counts, and which findings do."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How certain and how large. error: moves logprobs or breaks the start, for certain. warning: does so under
    conditions that this config does not rule out. note: worth knowing, no action needed.
    """

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for a note, 2 for an error."""
        return list(Severity).index(self)


class FailFor(StrEnum):
    """What --fail-on counts. move: what a move brings. state: also what is so today already."""

    MOVE = "move"
    STATE = "state"


@dataclass(frozen=True)
class Threshold:
    """What makes the exit code 1."""

    # From which severity on; a layer that mismatches is an error. None: nothing does.
    fail_on: Severity | None = Severity.ERROR
    fail_for: FailFor = FailFor.STATE

    @property
    def fails(self) -> bool:
        """Whether a mismatch makes the exit code 1."""
        return self.fail_on is not None
