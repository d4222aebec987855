"""Rounding in the body of the model: dense noise that is anew at every token, in proportion to 1 - p.

Covered: excess over a measured floor that has all marks of rounding (`dense_noise.py`) and that no covariate and no
rounded head explains. Not covered: without a floor nobody knows how much rounding is usual here, and without token ids
wrong weights look the same; then it stays an unexplained residual. Precision is not named by elimination.
Source: research on bfloat16 against float16 (arXiv 2510.26788); variance of a logprob under independent logit noise.
"""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.attribution.cause import LEAST_SHARE, Cause, NotTested, Outcome, Signature
from rlaudit.attribution.dense_noise import dense_noise
from rlaudit.attribution.excess import CONSTANT
from rlaudit.attribution.least_data import OF_A_VARIANCE
from rlaudit.attribution.token_evidence import TokenEvidence
from rlaudit.causes.head_precision import explained_share
from rlaudit.layers import Layer
from rlaudit.statistics.resample import REACH, chance_above, standard_score
from rlaudit.worlds.fault import noise_fault
from rlaudit.worlds.ground import Ground

NAME = "body-precision"
LEAST_SHARE_HERE = 0.3
TIMES_FLOOR = 1.5
OF_WHAT_IS_LEFT = 0.5


def signature(evidence: TokenEvidence) -> Outcome:
    """What the constant part leaves after the floor and the head."""
    excess = evidence.excess
    if excess is None:
        return NotTested("no mismatch to explain")
    if evidence.floor_k2 is None:
        return NotTested("no noise floor was measured: how much rounding is usual here is not known")
    noise = dense_noise(evidence)
    if noise.objections:
        return NotTested(f"the residual is not that of rounding: {noise.objections[0]}")
    rounding = evidence.head_rounding
    if rounding.unclear:
        return NotTested(f"the head is not excluded: {rounding.unclear}")
    constant = excess.parts[CONSTANT]
    kept = 1.0 - explained_share(evidence)
    value, low, high = (kept * one - evidence.floor_k2 for one in (constant.k2, constant.low, constant.high))
    share, share_low, share_high = (one / excess.excess_k2 for one in (value, low, high))
    spread = (constant.high - constant.low) / (2.0 * REACH)
    z = standard_score(value, kept * spread, evidence.clusters)
    beyond = kept * constant.low > TIMES_FLOOR * evidence.floor_k2
    # A head in bfloat16 rounds what goes into it as well, which no lattice shows and which adds up to as much again.
    beyond = beyond and (not rounding.rounded_sides or kept > OF_WHAT_IS_LEFT)
    return Signature(
        p_value=chance_above(z, evidence.clusters),
        effect=value,
        low=low,
        high=high,
        effect_of="k2, nats^2",
        large=beyond and share >= LEAST_SHARE_HERE and share_low >= LEAST_SHARE,
        because=f"dense noise in proportion to 1 - p, without outliers or memory: {share:.0%} "
        f"[{share_low:.0%}, {share_high:.0%}] of the excess k2",
        share=share,
        share_low=share_low,
        share_high=share_high,
    )


def everywhere(ground: Ground, rng: np.random.Generator) -> Floats:
    """Rounding in the body: more of the noise that is there anyway."""
    return np.ones(ground.tokens)


CAUSE = Cause(
    name=NAME,
    title="Precision of the model's body",
    layer=Layer.INFERENCE_PATH,
    needs=("token_id",),
    least=OF_A_VARIANCE,
    signature=signature,
    falsifier="the same k2 with float32 bodies on both sides",
    next="run both bodies in one higher precision (float32, or float16 instead of bfloat16) and compare",
    factor="dtype",
    planted=noise_fault((1.5, 4.0, 10.0), "", everywhere),
)
