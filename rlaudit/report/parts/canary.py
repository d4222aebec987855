"""What a canary reports: the curves of short trainings, arm by arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rlaudit.layers import Judgement, Verdict
from rlaudit.report.parts.curves import Curves
from rlaudit.report.parts.run import Cost


@dataclass(frozen=True, kw_only=True)
class CanaryLevels:
    """Means over seeds and over the first or last sixth of the steps; null where no training ended."""

    reward_first: float | None
    reward_last: float | None
    clip_rate: float | None
    kl: float | None
    entropy_last: float | None


@dataclass(frozen=True, kw_only=True)
class CanaryArm:
    """One arm: an engine, a way to hand weights to it, and a trainer. role: of its first seed's plan.

    backend_start, backend_later: k3 of rollout and trainer at the weights that sampled, at the first step and at most
    afterwards. lag: mean over tokens, in updates; max_lag: the most of any; lag_bound: batches begun ahead, 0 if engine
    and trainer took turns. met_in_flight: requests that updates met; flight_k3: k3 of their later tokens at the weights
    that sampled. transport: what brought the weights and what loaded them, as it ran. problems: of trainings that did
    not end. curves: its seeds against the reference's, as `rlaudit curves` says; null for the reference and an arm
    without a finished training. logs: the curves of each seed, in the run directory.
    """

    name: str
    version: str
    role: Literal["reference", "candidate"]
    trainings: int
    ended: int
    problems: Sequence[str]
    levels: CanaryLevels
    lag: float
    lag_bound: int | None = None
    max_lag: int | None = None
    met_in_flight: int | None = None
    flight_k3: float | None = None
    transport: str | None = None
    backend_start: float | None
    backend_later: float | None
    curves: Curves | None = None
    layers: Sequence[Judgement]
    logs: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class CanaryClaim:
    """A claim of the recipe, and what the curves make of it: match where it holds."""

    says: str
    arm: str
    metric: str
    expects: Literal["separated", "not separated"]
    verdict: Verdict
    because: str


@dataclass(frozen=True, kw_only=True)
class Canary:
    """Short trainings on real engines. felt: the k3 from which differences are as large as the clip range."""

    training: Mapping[str, Any]
    alpha: float
    felt: float
    arms: Sequence[CanaryArm]
    claims: Sequence[CanaryClaim]
    cost: Cost
    provenance: Mapping[str, Any]
