"""Does the log ratio follow what a base model says otherwise than the trainer?

log ratio = -slope (base - trainer) + noise, by least squares weighted with the noise that a logit error would make at
the token; slope 1 when the rollout is the base model, 0 when it has nothing to do with it.
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.attribution.excess import LEAST_ROOM, LEVEL, REPLICATES, Part
from rlaudit.statistics.cluster_sums import cluster_sums
from rlaudit.statistics.left_out import sums_left
from rlaudit.statistics.resample import cluster_weights, replicate_sums
from rlaudit.statistics.standard_score import chance_apart, standard_score

# Base models that give a token nothing would decide the slope alone.
CAP_NATS = 5.0


@dataclass(frozen=True, eq=False)
class BaseSlope:
    """slope, the part of k2 it explains, and the log ratio without it."""

    slope: float
    part: Part
    left_T: Floats


def base_slope(log_ratio_T: Floats, leaning_T: Floats, room_T: Floats, cluster_T: Integers, seed: int = 0) -> BaseSlope:
    """leaning_T: base - trainer logprobs, nats."""
    leaning_T = np.clip(np.nan_to_num(leaning_T), -CAP_NATS, CAP_NATS)
    weight_T = np.where(room_T > LEAST_ROOM, 1.0 / np.square(np.maximum(room_T, LEAST_ROOM)), 0.0)
    clusters = int(cluster_T.max(initial=-1)) + 1
    weighted = (weight_T * leaning_T * log_ratio_T, weight_T * np.square(leaning_T))
    plain = (np.square(leaning_T), leaning_T * log_ratio_T, np.ones(len(leaning_T)))
    sums_PJ = cluster_sums((*weighted, *plain), cluster_T, clusters)

    def explained(sums: Floats) -> tuple[Floats, Floats]:
        slope = -sums[..., 0] / np.maximum(sums[..., 1], 1e-300)
        # Half of what the sum of squares falls by when slope * leaning is taken out.
        saved = -slope * sums[..., 3] - 0.5 * np.square(slope) * sums[..., 2]
        return slope, saved / np.maximum(sums[..., 4], 1.0)

    slope, value = (float(one) for one in explained(sums_PJ.sum(axis=0)))
    slope_B, value_B = explained(replicate_sums(cluster_weights(clusters, REPLICATES, seed), sums_PJ))
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(value_B, [tail, 1.0 - tail])
    error = float(slope_B.std(ddof=1))
    slope_K, value_K = explained(sums_left(sums_PJ))

    def p_value(one: float, units: int) -> float:
        return chance_apart(standard_score(one, error, units), units)

    p_left_K = np.array([p_value(float(one), clusters - 1) for one in slope_K])
    part = Part(value, float(low), float(high), p_value(slope, clusters), value_K, p_left_K)
    return BaseSlope(slope, part, log_ratio_T + slope * leaning_T)
