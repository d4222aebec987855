"""Figures with their intervals: one metric, a paired difference, a distance against what is tolerated."""

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from rlaudit.layers import Verdict


class Measurement(TypedDict):
    """One metric with its interval over prompts. null where it is undefined; `reason` says why."""

    value: float | None
    low: float | None
    high: float | None
    tokens: int
    sequences: int
    clusters: int
    formula: str
    unit: str
    interval: str
    level: float
    reliable: bool
    reason: str | None
    notes: Sequence[str]


class Contrast(TypedDict):
    """metric(first arm) - metric(second arm), paired by prompt."""

    metric: str
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    clusters: int
    sequences: int
    interval: str
    level: float
    reliable: bool
    reason: str | None


class NonInferiority(TypedDict):
    """used = metric(candidate) / (times * metric(reference) + floor); above 1 is farther than allowed."""

    metric: str
    candidate: float | None
    reference: float | None
    times: float
    floor: float
    used: float | None
    low: float | None
    high: float | None
    clusters: int
    sequences: int
    paired: bool
    interval: str
    level: float
    reliable: bool
    reason: str | None
    ratio: float | None
    allowed: float | None
    verdict: Verdict


class Distance(TypedDict):
    """How far the engine is from the trainer by the yardstick of the inference path; k3 in nats."""

    verdict: Verdict
    yardstick: Literal["margin", "reference", "consequence"]
    tolerated: float
    consequence: Verdict
    clips: Sequence[Literal["ppo_clip_fraction", "gspo_clip_fraction"]]
    usual: tuple[float, float] | None
    reference: str | None
    reference_odd: bool | None
    against: NonInferiority | None
