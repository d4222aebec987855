"""How much of the squared log ratio each covariate accounts for, all of them at once.

Independent causes add their variances, so the squared log ratio, in units of what the same noise on the logits would do
at this token ((1 - p)^2), is modelled as a sum:

    E[d^2] = (1 - p)^2 (constant + sum over causes of coefficient * covariate),   all coefficients >= 0

Covered: several causes at the same time, covariates that correlate, sparse outliers (each token counts at most as
CAP times what the model expects of it, and what lies above is reported apart).
Not covered: what no covariate knows of stays in the constant.

Fitted by iteratively reweighted non-negative least squares: the weights 1 / expected^2 are those of squares of normal
variables. Intervals resample prompts, and each figure is known without any one prompt, too. Why not a regression of
log d^2: near-deterministic tokens, where d is rounding, would weigh as much as those that carry the mismatch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.statistics.resample import (
    Resampled,
    Weights,
    chance_above,
    cluster_sums,
    cluster_weights,
    holding,
    ratio,
    replicate_sums,
    resampled,
    sums_left,
)

Flags = NDArray[np.bool_]
CONSTANT = "constant"
# Tokens nearer to certainty carry rounding, and next to nothing of the mismatch.
LEAST_ROOM = 0.02
# A squared normal variable exceeds 16 times its mean once in 16,000 tokens.
CAP = 16.0
# Six standard deviations: of normal noise two tokens in a thousand million lie beyond.
OUTLIER = 36.0
# Coefficients are stable to a thousandth long before, unless two covariates are nearly the same.
ITERATIONS = 25
# Of k2 that counts as excess however high the floor is, so that shares stay finite.
LEAST_EXCESS = 0.1
# Stands in for 0 in a divisor.
TINY = 1e-300
# Of a fit each, which is what they cost; a tail of a fortieth is ten of them.
REPLICATES = 400


@dataclass(frozen=True, eq=False)
class CausePart:
    """One cause's part of sum d^2 / 2 per token, nats^2, with a 95 % interval over prompts and a one-sided p-value."""

    k2: float
    low: float
    high: float
    p_value: float
    # The p-value and the part without each part of the prompts (`resample.py`).
    p_left_K: Floats
    left_K: Floats

    @property
    def ends(self) -> tuple[float, float, float]:
        """The part and its interval."""
        return self.k2, self.low, self.high

    @property
    def surely_p(self) -> float:
        """The largest p-value, with all prompts and without each part of them."""
        return max(self.p_value, float(self.p_left_K.max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class ExcessModel:
    """The fitted sum."""

    parts: Mapping[str, CausePart]
    # Variance factor per token, times room^2.
    expected_T: Floats
    # d^2 in units of what the model expects; NaN for tokens that were not fitted.
    standardised_T: Floats
    # Of the tokens as they are, without the model.
    k2: float
    k2_low: float
    k2_high: float
    # Without each part of the prompts.
    k2_left_K: Floats
    floor_k2: float
    outliers: CausePart
    # Whether the token lies beyond OUTLIER.
    outlier_T: Flags
    # What each part adds to expected_T.
    added_T: Mapping[str, Floats]
    # Of a first fit, without the covariates that were made from it.
    first_standardised_T: Floats | None = None
    slope_on_base: float | None = None
    base: CausePart | None = None

    @property
    def excess_k2(self) -> float:
        """k2 above the floor; never below LEAST_EXCESS of k2."""
        return max(self.k2 - self.floor_k2, LEAST_EXCESS * self.k2, TINY)

    def share(self, part: CausePart) -> tuple[float, float, float]:
        """Return a part in units of the excess, with its interval."""
        return part.k2 / self.excess_k2, part.low / self.excess_k2, part.high / self.excess_k2

    def share_left(self, part: CausePart) -> Floats:
        """Return (K,) the same share without each part of the prompts."""
        excess_K = np.maximum(np.maximum(self.k2_left_K - self.floor_k2, LEAST_EXCESS * self.k2_left_K), TINY)
        share_K: Floats = part.left_K / excess_K
        return share_K


def fit_excess(
    log_ratio_T: Floats,
    room_T: Floats,
    cluster_T: Integers,
    bases: Mapping[str, Floats],
    floor_k2: float = 0.0,
    seed: int = 0,
) -> ExcessModel:
    """Fit the sum of `bases`, each (T, J) and non-negative, and a constant."""
    clusters = int(cluster_T.max(initial=-1)) + 1
    weights_BP = cluster_weights(clusters, REPLICATES, seed)
    usable_T = room_T > LEAST_ROOM
    names = [CONSTANT, *(name for name, columns in bases.items() for _ in range(columns.shape[1]))]
    design_TJ = np.concatenate([np.ones((len(room_T), 1)), *bases.values()], axis=1)
    scale_J = np.maximum(design_TJ[usable_T].mean(axis=0) if usable_T.any() else np.ones(len(names)), 1e-12)
    design_TJ = design_TJ / scale_J
    squared_T = np.square(log_ratio_T)
    ratio_T = squared_T / np.square(np.maximum(room_T, LEAST_ROOM))
    design_NJ, ratio_N, cluster_N = design_TJ[usable_T], ratio_T[usable_T], cluster_T[usable_T]
    coefficients_J, expected_N = _iterate(design_NJ, ratio_N)
    moments_PK = _moments(design_NJ, ratio_N, expected_N, cluster_N, clusters)
    coefficients_BJ = _solutions(replicate_sums(weights_BP, moments_PK), len(names))
    coefficients_KJ = _solutions(sums_left(moments_PK), len(names))
    room2_TJ = 0.5 * design_TJ * np.square(room_T)[:, None]
    rooms_PJ = cluster_sums([*room2_TJ.T, np.ones(len(room_T))], cluster_T, clusters)
    per_unit_J, per_unit_KJ = _means(rooms_PJ.sum(axis=0)), _means(sums_left(rooms_PJ))
    places_of = {name: [j for j, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}
    parts = {
        name: part_of_k2(
            Resampled(
                float(coefficients_J[places] @ per_unit_J[places]),
                coefficients_BJ[:, places] @ per_unit_J[places],
                (coefficients_KJ[:, places] * per_unit_KJ[:, places]).sum(axis=1),
                clusters,
            )
        )
        for name, places in places_of.items()
    }
    expected_T = np.maximum(design_TJ @ coefficients_J, TINY)
    standardised_T = np.where(usable_T, ratio_T / expected_T, np.nan)
    squares_PJ = cluster_sums((squared_T, np.ones(len(squared_T))), cluster_T, clusters)
    k2 = resampled(squares_PJ, weights_BP, lambda sums: 0.5 * ratio(sums))
    k2_low, k2_high = holding(*k2.percentiles(), k2.left_K)
    outlier_T = np.nan_to_num(standardised_T, nan=0.0) > OUTLIER
    outliers = _outliers(squared_T, outlier_T, cluster_T, weights_BP)
    return ExcessModel(
        parts=parts,
        expected_T=expected_T,
        standardised_T=standardised_T,
        k2=k2.value,
        k2_low=k2_low,
        k2_high=k2_high,
        k2_left_K=k2.left_K,
        floor_k2=floor_k2,
        outliers=outliers,
        outlier_T=outlier_T,
        added_T={name: design_TJ[:, places] @ coefficients_J[places] for name, places in places_of.items()},
    )


def _iterate(design_NJ: Floats, ratio_N: Floats) -> tuple[Floats, Floats]:
    if not ratio_N.any():
        return np.zeros(design_NJ.shape[1]), np.ones(len(ratio_N))
    expected_N = np.full(len(ratio_N), max(float(ratio_N.mean()), TINY))
    coefficients_J = np.zeros(design_NJ.shape[1])
    for _ in range(ITERATIONS):
        before_J = coefficients_J
        coefficients_J = _solve(*_normal(design_NJ, ratio_N, expected_N))
        expected_N = _no_less(design_NJ @ coefficients_J)
        if np.allclose(coefficients_J, before_J, rtol=1e-3, atol=1e-12 * float(coefficients_J.max(initial=0.0))):
            break
    return coefficients_J, expected_N


def _no_less(expected_N: Floats) -> Floats:
    # Weights are bounded: a token at which nothing is expected would decide everything.
    floor = max(float(np.median(expected_N)) * 1e-3, float(expected_N.mean()) * 1e-4, TINY)
    return np.maximum(expected_N, floor)


def _normal(design_NJ: Floats, ratio_N: Floats, expected_N: Floats) -> tuple[Floats, Floats]:
    weighted_NJ = design_NJ / np.square(expected_N)[:, None]
    return weighted_NJ.T @ design_NJ, weighted_NJ.T @ np.minimum(ratio_N, CAP * expected_N)


def _solve(gram_JJ: Floats, moments_J: Floats) -> Floats:
    """Return the b >= 0 that minimises b'Gb/2 - m'b, by non-negative least squares on the Cholesky factor."""
    scale_J = np.sqrt(np.maximum(np.diag(gram_JJ), TINY))
    scaled_JJ = gram_JJ / np.outer(scale_J, scale_J) + 1e-9 * np.eye(len(gram_JJ))
    upper_JJ = np.linalg.cholesky(scaled_JJ).T
    target_J = np.linalg.solve(upper_JJ.T, moments_J / scale_J)
    # A third of a second to import, and only needed here.
    from scipy.optimize import nnls

    coefficients_J: Floats = nnls(upper_JJ, target_J)[0] / scale_J
    return coefficients_J


def _moments(design_NJ: Floats, ratio_N: Floats, expected_N: Floats, cluster_N: Integers, clusters: int) -> Floats:
    """Return (P, J + J (J + 1) / 2) what prompts add to moments and Gram matrix, at the weights of the full fit."""
    size = design_NJ.shape[1]
    moments_N = np.minimum(ratio_N, CAP * expected_N) / np.square(expected_N)
    inverse_N = 1.0 / np.square(expected_N)
    columns = [moments_N * design_NJ[:, j] for j in range(size)]
    columns += [design_NJ[:, i] * design_NJ[:, j] * inverse_N for i, j in _pairs(size)]
    return cluster_sums(columns, cluster_N, clusters)


def _pairs(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i, size)]


def _solutions(moments_BK: Floats, size: int) -> Floats:
    """Return (B, J) coefficients, those of each row of moments."""
    grams_BJJ = np.zeros((len(moments_BK), size, size))
    for place, (i, j) in enumerate(_pairs(size)):
        grams_BJJ[:, i, j] = grams_BJJ[:, j, i] = moments_BK[:, size + place]
    return np.stack([_solve(gram, moments) for gram, moments in zip(grams_BJJ, moments_BK[:, :size], strict=True)])


def _means(sums: Floats) -> Floats:
    """Divide sums by their number, which is the last column."""
    means: Floats = sums[..., :-1] / np.maximum(sums[..., -1:], 1.0)
    return means


def part_of_k2(part: Resampled) -> CausePart:
    """Return a resampled part; p is one-sided: coefficients are never negative, and a part of 0 is no evidence."""
    low, high = part.percentiles()

    def chance(score: float, clusters: int) -> float:
        return chance_above(score, clusters) if score > 0 else 1.0

    return CausePart(part.value, low, high, *part.chances(chance), left_K=part.left_K)


def _outliers(squared_T: Floats, far_T: Flags, cluster_T: Integers, weights_BP: Weights) -> CausePart:
    """Return the part of k2 in tokens beyond six standard deviations of the model."""
    tokens, clusters = max(len(squared_T), 1), weights_BP.shape[1]
    columns = (np.where(far_T, squared_T, 0.0), squared_T)
    sums_PJ = cluster_sums(columns, cluster_T, clusters)
    # Resampled as a share: the few outliers dominate numerator and total alike.
    values_B = 0.5 * float(squared_T.sum()) / tokens * ratio(replicate_sums(weights_BP, sums_PJ))
    value = 0.5 * float(sums_PJ[:, 0].sum()) / tokens
    left_K = 0.5 * ratio(sums_left(cluster_sums((columns[0], np.ones(len(far_T))), cluster_T, clusters)))
    return part_of_k2(Resampled(value, values_B, left_K, clusters))
