"""What was seen of a log that was held against gates."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HeldGate:
    """A gate over one metric. evidence: the most there ever was; alarm_evidence: what raises it."""

    gate: str
    metric: str
    canonical: str
    limit: float
    steps: int
    first_step: int | None
    last_step: int | None
    steps_beyond: int
    last_value: float | None
    evidence: float
    alarm_evidence: float
    alarm_step: int | None
    since_step: int | None
    because: str


@dataclass(frozen=True, kw_only=True)
class HeldLog:
    """A log and its gates. ended: why it is looked at no longer."""

    name: str
    what: str
    alpha: float
    ended: str
    gates: Sequence[HeldGate]
    method: Sequence[str]
