"""What a comparison of training curves reports."""

from collections.abc import Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict


class LogProblem(TypedDict):
    """What was met in a log and not used."""

    path: str
    place: str
    message: str


class CurveRun(TypedDict):
    """One run's logs, and how they were read."""

    name: str
    sink: str
    files: Sequence[str]
    step: str
    first_step: int | None
    last_step: int | None
    metrics: int
    problems: Sequence[LogProblem]


class Steps(TypedDict):
    """Which steps were compared."""

    first: int
    last: int
    count: int


class Point(TypedDict):
    """One step of both curves, with the reference's band."""

    step: int
    reference: float
    candidate: float
    low: NotRequired[float]
    high: NotRequired[float]


class CurveMetric(TypedDict):
    """One metric of both runs, and whether it separated."""

    name: str
    candidate_name: str | None
    canonical: str | None
    group: Literal["logprobs", "correction", "objective", "policy", "reward", "length"] | None
    framework: str | None
    definition: str | None
    clipping: str | None
    trainer_logprobs: str | None
    outcome: Literal["separated", "not separated", "unknown"]
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


class Order(TypedDict):
    """Which kind of metric separated first."""

    precedence: Literal[
        "nothing separated",
        "logprobs first",
        "logprobs only",
        "training first",
        "training only",
        "order not decided",
        "unknown",
    ]
    because: str
    suggests: str
    next: str


class Curves(TypedDict):
    """Two runs, metric by metric. candidates: all seeds of the candidate, of which `candidate` is the first."""

    reference: Sequence[CurveRun]
    candidate: CurveRun
    candidates: Sequence[CurveRun]
    alpha: float
    band: str
    assumptions: Sequence[str]
    metrics: Sequence[CurveMetric]
    order: Order
