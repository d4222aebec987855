"""What gates learned from runs say of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlaudit.curves.learned_gates import JudgedGate, LearnedGate


@dataclass(frozen=True, kw_only=True)
class LearnedGates:
    """The gates, and a run that was held against them. name: of the run, "" if the gates were only learned."""

    name: str
    what: str
    alpha: float
    confidence: float
    runs: Sequence[str]
    gates: Sequence[LearnedGate]
    judged: Sequence[JudgedGate]
    not_learned: Mapping[str, str]
    notes: Sequence[str]
    method: Sequence[str]
