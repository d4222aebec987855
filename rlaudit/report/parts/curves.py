"""What a comparison of training curves reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.curves.comparison import CurveMetric
from rlaudit.curves.order import Order
from rlaudit.curves.run_log import Problem


@dataclass(frozen=True, kw_only=True)
class CurveRun:
    """One run's logs, and how they were read."""

    name: str
    sink: str
    files: Sequence[str]
    step: str
    first_step: int | None
    last_step: int | None
    metrics: int
    problems: Sequence[Problem]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Two runs, metric by metric. candidates: all seeds of the candidate, of which `candidate` is the first."""

    reference: Sequence[CurveRun]
    candidate: CurveRun
    candidates: Sequence[CurveRun]
    alpha: float
    band: str
    assumptions: Sequence[str]
    metrics: Sequence[CurveMetric]
    order: Order
