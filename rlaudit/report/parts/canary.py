"""What a canary reports: the curves of short trainings, arm by arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rlaudit.diagnosis.canary import CanaryClaim
from rlaudit.laboratory.study_run import Cost
from rlaudit.report.parts.curves import Curves


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

    lag: mean over tokens, in updates, null if it was not logged. lag_bound: batches begun ahead, 0 if engine and
    trainer took turns. met_in_flight: requests that updates met. transport: what brought the weights and what loaded
    them, as it ran. problems: of trainings that did not end. curves: its seeds against the reference's, as
    `rlaudit curves` says; null for the reference and an arm without a finished training. logs: the curves of each seed,
    in the run directory.
    """

    name: str
    version: str
    role: Literal["reference", "candidate"]
    trainings: int
    ended: int
    problems: Sequence[str]
    levels: CanaryLevels
    lag: float | None
    lag_bound: int | None = None
    met_in_flight: int | None = None
    transport: str | None = None
    curves: Curves | None = None
    logs: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Canary:
    """Short trainings on real engines. alpha: chance of a false alarm in the curves of an arm."""

    training: Mapping[str, Any]
    alpha: float
    arms: Sequence[CanaryArm]
    claims: Sequence[CanaryClaim]
    cost: Cost
    provenance: Mapping[str, Any]
