"""Patterns of tokens that tell causes from what they are mistaken for and no column of a log shows.

Rounding errs anew at every token and stays small. Other weights (an adapter, a rope setting, a bias) move one token id
the same way in every prompt, or most tokens farther than engines with the same weights are apart. What follows the
position moves typical tokens, not only those of a few contexts.
"""

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import LEAST_SHARE
from rlaudit.meaning.log_statistics import equally_likely, mean_apart
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.estimate import Estimate
from rlaudit.statistics.measurement.excess import CAP, CONSTANT, LEAST_ROOM, TINY, ExcessModel
from rlaudit.statistics.resample import standard_score

# Of the variance that the same token id, or neighbouring tokens, have in common.
MOST_IN_COMMON = 0.05
# Standard errors from which on errors that are alike are not so by chance: one residual of rounding in seven hundred.
SURELY_ALIKE = 3.0
# nats^2: dense models in bfloat16 stay below it (USUAL of `diagnosis/distance.py`).
MOST_OF_ROUNDING = 1e-2
# A measured floor is a measurement, too.
TIMES_FLOOR = 2.0
# Median of the square of a standard normal variable: outliers do not move it.
NORMAL_MEDIAN = 0.455
FEWEST = 50
# Logarithm of how much larger typical squares are: what flat contexts instead of sharp ones make of the same noise.
TWICE = 0.7
SURELY_APART = 1e-3
# Of a typical square: what stands in for an error of 0, which rounding leaves.
LEAST_SQUARE = 0.1
# A part of the excess this sure, and large enough to be named, is another cause at work.
SURE = 5e-3


def errs_by_token(evidence: TokenEvidence) -> bool:
    """Return whether a token id errs the same way in all prompts, more than all tokens do.

    What all tokens have in common is of no token: a normaliser, as between a base model and what was trained from it.
    """
    if evidence.missing(("token_id",)):
        return False
    error_T, usable_T = standard_errors(evidence)
    if not usable_T.any():
        return False
    by_token, z = in_common(np.where(usable_T, error_T - error_T[usable_T].mean(), 0.0), usable_T, evidence)
    return by_token > MOST_IN_COMMON and z > SURELY_ALIKE


def standard_errors(evidence: TokenEvidence) -> tuple[Floats, NDArray[np.bool_]]:
    """Return (T,) log ratios in standard deviations of what is expected of the token, and which tokens have one."""
    assert evidence.excess is not None
    standardised_T = evidence.excess.standardised_T
    usable_T = np.isfinite(standardised_T)
    error_T = np.where(usable_T, np.sign(evidence.log_ratio_T) * np.sqrt(np.nan_to_num(standardised_T)), 0.0)
    return np.clip(error_T, -np.sqrt(CAP), np.sqrt(CAP)), usable_T


def moves_most_tokens(evidence: TokenEvidence, kept_T: NDArray[np.bool_]) -> bool:
    """Return whether the bulk of the tokens `kept_T` is farther off than rounding puts it."""
    usable_T = kept_T & (evidence.room_T > LEAST_ROOM)
    if usable_T.sum() < FEWEST:
        return False
    k2 = 0.5 * _typical_square(evidence, usable_T) * float(np.square(evidence.room_T[kept_T]).mean())
    return k2 > max(MOST_OF_ROUNDING, TIMES_FLOOR * (evidence.floor_k2 or 0.0))


def loud(excess: ExcessModel, but: str = "") -> NDArray[np.bool_]:
    """Return (T,) whether covariates that matter, of other causes than `but`, add more than everything else does."""
    sure = [
        name
        for name, part in excess.parts.items()
        if name not in {CONSTANT, but} and part.p_value < SURE and excess.share(part)[0] >= LEAST_SHARE
    ]
    added_T = np.sum([excess.added_T[name] for name in sure], axis=0) if sure else np.zeros_like(excess.expected_T)
    return 2.0 * added_T > excess.expected_T


def typical_apart(evidence: TokenEvidence, ours_T: NDArray[np.bool_], others_T: NDArray[np.bool_]) -> Estimate:
    """Return how much larger the squared error of our tokens is than that of others as likely: mean of its logarithm.

    A logarithm weighs a typical token, and no sharp context that all samples of a prompt share. Without others as
    likely, nothing is shown.
    """
    usable_T = evidence.room_T > LEAST_ROOM
    ours_T, others_T = ours_T & usable_T, others_T & usable_T
    alike_T, weight_T = equally_likely(evidence.rollout_logprobs_T, ours_T, others_T)
    return mean_apart(evidence, _log_squares(evidence, others_T), alike_T, weight_T)


def manifold_apart(evidence: TokenEvidence, ours_T: NDArray[np.bool_], others_T: NDArray[np.bool_]) -> Estimate:
    """Return the same of all tokens: for what is so much larger that how likely tokens are is no matter."""
    usable_T = evidence.room_T > LEAST_ROOM
    ours_T, others_T = ours_T & usable_T, others_T & usable_T
    return mean_apart(evidence, _log_squares(evidence, others_T), ours_T, others_T.astype(np.float64))


def _log_squares(evidence: TokenEvidence, others_T: NDArray[np.bool_]) -> Floats:
    """Return (T,) the logarithm of each squared error of the logits, in typical ones of the others."""
    squared_T = np.square(evidence.log_ratio_T / np.maximum(evidence.room_T, LEAST_ROOM))
    typical = float(np.median(squared_T[others_T])) or float(squared_T[others_T].mean()) if others_T.any() else 0.0
    logs_T: Floats = np.log(squared_T / max(typical, TINY) + LEAST_SQUARE)
    return logs_T


def _typical_square(evidence: TokenEvidence, usable_T: NDArray[np.bool_]) -> float:
    """Return the square of the error of the logits, nats^2, that half of the tokens stay below as if it were normal."""
    if not usable_T.any():
        return 0.0
    return float(np.median(np.square(evidence.log_ratio_T[usable_T] / evidence.room_T[usable_T]))) / NORMAL_MEDIAN


def in_common(error_T: Floats, usable_T: NDArray[np.bool_], evidence: TokenEvidence) -> tuple[float, float]:
    """Return the mean product of errors of a token id over pairs of different clusters, and its z.

    Sums per (token id, cluster) make it (sum over clusters)^2 - sum of squares; pairs are weighted by id, so that the
    commonest id does not decide alone.
    """
    _, id_T = np.unique(evidence.token_id_T, return_inverse=True)
    cells, cell_T = np.unique(id_T * evidence.clusters + evidence.cluster_T, return_inverse=True)
    sums_C = np.bincount(cell_T, error_T)
    counts_C = np.bincount(cell_T, usable_T)
    id_C = cells // evidence.clusters
    sums_I, counts_I = np.bincount(id_C, sums_C), np.bincount(id_C, counts_C)
    products_I = np.square(sums_I) - np.bincount(id_C, np.square(sums_C))
    pairs_I = np.square(counts_I) - np.bincount(id_C, np.square(counts_C))
    weight_I = np.where(pairs_I > 0, 1.0 / np.maximum(counts_I, 1), 0.0)
    total = float((weight_I * pairs_I).sum())
    if total <= 0:
        return 0.0, 0.0
    variance = float(np.square(error_T).sum() / max(usable_T.sum(), 1))
    estimate = float((weight_I * products_I).sum()) / total / max(variance, 1e-12)
    error = float(np.sqrt(2.0 * (np.square(weight_I) * pairs_I).sum())) / total
    return estimate, standard_score(estimate, error, evidence.clusters)
