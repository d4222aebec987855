"""Rounding in the body of the model: new noise at every token, in proportion to 1 - p.

Covered: k2 beyond what is usual here that has all marks of rounding (below) and that no covariate and no rounded head
explains. Rounding errs anew at every token. Its standardised log ratios have no outliers and do not depend on how sure
the model is. They do not repeat for the same token id or along a sequence. Wrong or old weights err the same way each
time.
What is usual is the k2 of today's engine (`compare NEW --before TODAY`), unless that one has a mismatch itself.
Not covered: logs without today's, where it is unknown how much rounding is usual, and logs without token ids, where
wrong weights look the same. There it stays an unexplained residual. Precision is not named by elimination.
Source: research on bfloat16 against float16 (arXiv 2510.26788); variance of a logprob under independent logit noise.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import LEAST_SHARE, Cause, NotTested, Outcome
from rlaudit.causes.attribution.part_signature import SHARE, k2_signature
from rlaudit.causes.attribution.rival_patterns import MOST_IN_COMMON, SURELY_ALIKE, in_common, standard_errors
from rlaudit.causes.head_precision import explained_share
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.log_statistics import seen_shift
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.measurement.excess import CAP, CONSTANT, LEAST_ROOM
from rlaudit.statistics.resample import REACH, chance_above, standard_score

NAME = "body-precision"
# More than of other causes: what nothing else explains is of this kind more often than not, and is not it.
LEAST_SHARE_HERE = 0.3
# Half as much rounding again as is usual here is not usual.
TIMES_FLOOR = 1.5
OF_WHAT_IS_LEFT = 0.5
# Largest ratio of the noise of tokens of different certainty, in units of (1 - p)^2.
MOST_UNEVEN = 3.0
# As much as the tails of an engine's noise carry (LEAST_OUTLIER_SHARE of `moe_routing.py`).
MOST_OUTLIERS = 0.15
# Standard deviations: a shift that makes less than a hundredth of the variance is no penalty's.
MOST_SHIFT = 0.15
SEEN_ALPHA = 1e-5
# Classes of 1 - p, from LEAST_ROOM on, and how many tokens of one have a variance worth comparing (to a fifth).
CERTAINTIES = (LEAST_ROOM, 0.1, 0.3, 0.7, 1.01)
FEWEST = 50


def signature(evidence: TokenEvidence) -> Outcome:
    """Return what the constant part leaves after the usual rounding and the head."""
    excess = evidence.excess
    if excess is None:
        return NotTested("no mismatch to explain")
    if evidence.floor_k2 is None:
        return NotTested(
            "it is not known how much rounding alone makes: give --before with a log of today's engine, free of "
            "mismatch"
        )
    noise = dense_noise(evidence)
    if noise.objections:
        return NotTested(f"the residual is not that of rounding: {noise.objections[0]}")
    rounding = evidence.head_rounding
    if rounding.unclear:
        return NotTested(f"a rounded head is not excluded: {rounding.unclear}")
    constant = excess.parts[CONSTANT]
    kept = 1.0 - explained_share(evidence)
    value, low, high = (kept * nats - evidence.floor_k2 for nats in (constant.k2, constant.low, constant.high))
    share, share_low, share_high = (nats / excess.excess_k2 for nats in (value, low, high))
    if share_low > 1.0:
        return NotTested(
            f"noise in proportion to 1 - p would make only {100 * share:.0f} %, so this noise is of another kind"
        )
    spread = (constant.high - constant.low) / (2.0 * REACH)
    z = standard_score(value, kept * spread, evidence.clusters)
    beyond = kept * constant.low > TIMES_FLOOR * evidence.floor_k2
    # A head in bfloat16 rounds what goes into it as well, which no lattice shows and which adds up to as much again.
    beyond = beyond and (not rounding.rounded_sides or kept > OF_WHAT_IS_LEFT)
    return k2_signature(
        (value, low, high),
        (share, share_low, share_high),
        p_value=chance_above(z, evidence.clusters),
        large=beyond and share >= LEAST_SHARE_HERE and share_low >= LEAST_SHARE,
        because=f"dense noise in proportion to 1 - p, without outliers or memory, makes {SHARE}",
    )


@dataclass(frozen=True)
class DenseNoise:
    """What the residual looks like."""

    # Covariance of standardised log ratios of a token id over clusters, in units of the variance, and its z; None
    # without token ids.
    by_token: float | None
    by_token_z: float | None
    # The same of neighbouring tokens.
    along: float
    along_z: float
    # Largest ratio of noise between classes of certainty.
    uneven: float
    # Share of k2 beyond six standard deviations.
    outliers: float
    # Mean error of tokens seen before less that of others, in standard deviations.
    seen: float = 0.0

    @property
    def objections(self) -> tuple[str, ...]:
        """What speaks against rounding."""
        against = []
        if self.by_token is None:
            against.append("without token ids, errors that repeat for a token cannot be excluded")
        elif self.by_token > MOST_IN_COMMON and (self.by_token_z or 0.0) > SURELY_ALIKE:
            against.append(
                f"a token id errs alike each time ({100 * self.by_token:.0f} % of the variance): weights, not rounding"
            )
        if abs(self.along) > MOST_IN_COMMON and abs(self.along_z) > SURELY_ALIKE:
            against.append(f"neighbours err alike ({100 * self.along:.0f} % of the variance): weights or cache")
        if abs(self.seen) > MOST_SHIFT:
            against.append(f"tokens seen before err to one side ({self.seen:+.2f} standard deviations): a penalty")
        if self.uneven > MOST_UNEVEN:
            against.append(f"noise differs {self.uneven:.1f}-fold between sure and unsure tokens")
        if self.outliers > MOST_OUTLIERS:
            against.append(f"outliers carry {100 * self.outliers:.0f} %")
        return tuple(against)


def dense_noise(evidence: TokenEvidence) -> DenseNoise:
    """Measure the residual of `evidence.excess`."""
    assert evidence.excess is not None
    standardised_T = evidence.excess.standardised_T
    error_T, usable_T = standard_errors(evidence)
    by_token = by_token_z = None
    if not evidence.missing(("token_id",)):
        by_token, by_token_z = in_common(error_T, usable_T, evidence)
    along, along_z = _along(error_T, usable_T, evidence)
    levels = []
    for low, high in pairwise(CERTAINTIES):
        inside_T = usable_T & (evidence.room_T >= low) & (evidence.room_T < high)
        if inside_T.sum() >= FEWEST:
            levels.append(float(np.minimum(standardised_T[inside_T], CAP).mean()))
    uneven = max(levels) / max(min(levels), 1e-12) if len(levels) > 1 else 1.0
    outliers = evidence.excess.outliers.k2 / evidence.excess.excess_k2
    return DenseNoise(by_token, by_token_z, along, along_z, uneven, outliers, _seen(error_T, evidence))


def _seen(error_T: Floats, evidence: TokenEvidence) -> float:
    """Return the mean error of tokens seen before less that of others, in standard deviations; 0 if that is chance."""
    seen = seen_shift(evidence)
    spread = float(error_T.std())
    if seen is None or seen.shift.p_value > SEEN_ALPHA or not spread > 0:
        return 0.0
    seen_T = np.asarray(evidence.columns["seen_before"], dtype=bool) & (evidence.room_T > LEAST_ROOM)
    other_T = ~np.asarray(evidence.columns["seen_before"], dtype=bool) & (evidence.room_T > LEAST_ROOM)
    return float(error_T[seen_T].mean() - error_T[other_T].mean()) / spread


def _along(error_T: Floats, usable_T: NDArray[np.bool_], evidence: TokenEvidence) -> tuple[float, float]:
    """Return the correlation of the errors of neighbouring tokens, and its z."""
    both_T = usable_T[1:] & usable_T[:-1] & (evidence.sequence_T[1:] == evidence.sequence_T[:-1])
    pairs = int(both_T.sum())
    if pairs < FEWEST:
        return 0.0, 0.0
    products = (error_T[1:] * error_T[:-1])[both_T]
    variance = float(np.square(error_T).sum() / max(usable_T.sum(), 1))
    estimate = float(products.mean()) / max(variance, 1e-12)
    return estimate, standard_score(float(products.mean()), float(products.std()) / np.sqrt(pairs), pairs)


CAUSE = Cause(
    name=NAME,
    title="Precision of the model's body",
    layer=Layer.INFERENCE_PATH,
    needs=("token_id",),
    least=OF_A_VARIANCE,
    signature=signature,
    falsifier="k2 stays the same with float32 bodies on both sides",
    next="run both bodies in one higher precision (float32, or float16 instead of bfloat16) and compare",
    factor="dtype",
)
