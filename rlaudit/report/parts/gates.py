"""What was seen of a log that was held against gates."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.curves.gate import HeldGate


@dataclass(frozen=True, kw_only=True)
class HeldLog:
    """A log and its gates. ended: why it is looked at no longer."""

    name: str
    what: str
    alpha: float
    ended: str
    gates: Sequence[HeldGate]
    method: Sequence[str]
