"""Version lag per token, and what it alone does to the objective.

A token's lag is the number of updates between the weights that sampled it and those that the trainer holds when the
sequence ends. Two comparisons are kept apart:
    right weights    the trainer scores each token with the weights that sampled it: a mismatch is the engine's fault
    trainer weights  the trainer scores all tokens with its current weights: the objective has to correct what lag adds
Not covered: updates whose version is wrong; staleness.py and parts.py detect those.
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.laboratory.studies.updates.cases import FLIGHT
from rlaudit.laboratory.studies.updates.scored_tokens import Mask, ScoredTokens
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


def lag_groups(tokens: ScoredTokens, settings: ObjectiveSettings) -> list[LagGroup]:
    """Return the tokens in flight by lag, smallest first."""
    metrics = [metric for name, metric in all_metrics().items() if name in METRICS]
    in_flight_T = np.array([flight.run == FLIGHT for flight in tokens.flights], dtype=bool)[tokens.sequence_T]
    lag_T = np.where(in_flight_T, tokens.trainer_version_T - tokens.version_T, np.nan)

    def measured(of_lag_T: Mask, trainer_T: Floats) -> dict[str, Measurement]:
        pairs = tokens.pairs(of_lag_T, trainer_T)
        return measure(pairs, settings, metrics) if pairs.tokens else {}

    return [
        LagGroup(
            lag=int(lag),
            tokens=int((lag_T == lag).sum()),
            trainer_weights=measured(lag_T == lag, tokens.trainer_T),
            right_weights=measured(lag_T == lag, tokens.right_T),
        )
        for lag in np.unique(lag_T[np.isfinite(lag_T)])
    ]
