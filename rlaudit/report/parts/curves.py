"""What a comparison of training curves reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.curves.comparison import Outcome
from rlaudit.curves.logged_metric import Group
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
class Steps:
    """Which steps were compared."""

    first: int
    last: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Point:
    """One step of both curves, with the reference's band."""

    step: int
    reference: float
    candidate: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class CurveMetric:
    """One metric of both runs, and whether it separated."""

    name: str
    candidate_name: str | None
    canonical: str | None
    group: Group | None
    framework: str | None
    definition: str | None
    clipping: str | None
    trainer_logprobs: str | None
    outcome: Outcome
    because: str
    detected_step: int | None
    onset_step: int | None
    reference_level: float | None
    candidate_level: float | None
    steps: Steps | None
    averaged_steps: int | None
    statistic: float | None
    threshold: float | None
    noise_ratio: float | None
    resolution: float | None
    logarithm: bool | None
    notes: Sequence[str]
    points: Sequence[Point]


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
