"""Does the log ratio follow the difference between a base model and the trainer?

log ratio = -slope (base - trainer) + noise, by least squares weighted with the noise that a logit error would make at
the token; slope 1 when the rollout is the base model, 0 when it has nothing to do with it.
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.statistics.measurement.excess import LEAST_ROOM, REPLICATES, CausePart
from rlaudit.statistics.resample import chance_apart, cluster_sums, cluster_weights, resampled

# Base models that give a token nothing would decide the slope alone.
CAP_NATS = 5.0
# A base model that does not differ from the trainer has no slope, and gets 0.
LEAST_DENOMINATOR = 1e-300


@dataclass(frozen=True, eq=False)
class BaseSlope:
    """How far the log ratio follows the base model."""

    slope: float
    # The part of k2 that the slope explains.
    part: CausePart
    # The log ratio without that part.
    left_T: Floats


def base_slope(log_ratio_T: Floats, leaning_T: Floats, room_T: Floats, cluster_T: Integers, seed: int = 0) -> BaseSlope:
    """Fit the slope. leaning_T: base - trainer logprobs, nats."""
    leaning_T = np.clip(np.nan_to_num(leaning_T), -CAP_NATS, CAP_NATS)
    weight_T = np.where(room_T > LEAST_ROOM, 1.0 / np.square(np.maximum(room_T, LEAST_ROOM)), 0.0)
    clusters = int(cluster_T.max(initial=-1)) + 1
    weighted = (weight_T * leaning_T * log_ratio_T, weight_T * np.square(leaning_T))
    plain = (np.square(leaning_T), leaning_T * log_ratio_T, np.ones(len(leaning_T)))
    sums_PJ = cluster_sums((*weighted, *plain), cluster_T, clusters)

    def slope_of(sums: Floats) -> Floats:
        slope: Floats = -sums[..., 0] / np.maximum(sums[..., 1], LEAST_DENOMINATOR)
        return slope

    def saved_by(sums: Floats) -> Floats:
        """Return half of what the mean square falls by if slope * leaning is taken out."""
        slope = slope_of(sums)
        saved = -slope * sums[..., 3] - 0.5 * np.square(slope) * sums[..., 2]
        return saved / np.maximum(sums[..., 4], 1.0)

    weights_BP = cluster_weights(clusters, REPLICATES, seed)
    slope, saved = (resampled(sums_PJ, weights_BP, statistic) for statistic in (slope_of, saved_by))
    part = CausePart(saved.value, *saved.percentiles(), *slope.chances(chance_apart), left_K=saved.left_K)
    return BaseSlope(slope.value, part, log_ratio_T + slope.value * leaning_T)
