"""Version lag per token, and what it alone does to the objective.

A token's lag is the number of updates between the weights that sampled it and those that the trainer holds when the
sequence ends. Two comparisons are kept apart:
    right weights    the trainer scores each token with the weights that sampled it: a mismatch is the engine's fault
    trainer weights  the trainer scores all tokens with its current weights: the objective has to correct what lag adds
Not covered: updates whose version is wrong; staleness.py and parts.py detect those.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.laboratory.studies.updates.records import Flight
from rlaudit.laboratory.studies.updates.scoring import Scorebook, pairs_of
from rlaudit.statistics.measurement.measure import Measurement, all_metrics, measure
from rlaudit.statistics.measurement.metric import ObjectiveSettings

METRICS = ("k2", "k3", "ppo_clip_fraction")


@dataclass(frozen=True)
class LagGroup:
    """The tokens of one lag. Measurements are of METRICS, and empty without a scored token."""

    lag: int
    tokens: int
    trainer_weights: dict[str, Measurement]
    right_weights: dict[str, Measurement]


def lag_groups(flights: Sequence[Flight], book: Scorebook, settings: ObjectiveSettings) -> list[LagGroup]:
    """Return the tokens of these requests by lag, smallest first."""
    lags = sorted(
        {flight.trainer_version - version for flight in flights for version in flight.versions if version is not None}
    )
    return [_group(flights, book, settings, lag) for lag in lags]


def _group(flights: Sequence[Flight], book: Scorebook, settings: ObjectiveSettings, lag: int) -> LagGroup:
    def of_lag(flight: Flight) -> list[bool]:
        return [version is not None and flight.trainer_version - version == lag for version in flight.versions]

    metrics = [metric for name, metric in all_metrics().items() if name in METRICS]
    now = pairs_of(flights, lambda flight: book.logprobs(str(flight.trainer_version), flight), of_lag)
    right = pairs_of(flights, book.under_own_versions, of_lag)
    return LagGroup(
        lag=lag,
        tokens=sum(sum(of_lag(flight)) for flight in flights),
        trainer_weights=measure(now, settings, metrics) if now.tokens else {},
        right_weights=measure(right, settings, metrics) if right.tokens else {},
    )
