"""Routers that choose other experts: a few tokens far off while all others stay where they were.

Covered: tokens beyond six standard deviations of what every other covariate explains. Told from precision, which is
dense, from noise with heavy tails, which thins out on the way there, from a local cause, which its covariate explains,
and from tokens that one side treats in another way (a last token, a banned one), by sign and place.
Not covered: routing differences in most tokens, which look like dense noise, and rollouts under a filter, whose edge
moves with any noise and puts a few tokens far off.
Source: R3 (arXiv 2510.11370) and its share of extreme ratios; ms-swift and slime replay the routing.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from rlaudit.attribution.cause import LEAST_SHARE, SURELY, Cause, NotTested, Outcome
from rlaudit.attribution.part_signature import k2_signature
from rlaudit.causes.head_precision import one_step_off
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_OUTLIERS
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.measurement.excess import CONSTANT, ExcessModel

NAME = "moe-routing"
# Noise with the tails of Student's t with 6 degrees of freedom puts this share beyond six standard deviations.
ORDINARY_SHARE = 3.3e-4
# Such tails alone give the outliers some hundredths of the variance.
LEAST_OUTLIER_SHARE = 0.15
# Of a handful the share of k2 has no interval that can be believed.
FEWEST = 12
# In squared standard deviations: where a tail lies that reaches beyond OUTLIER. Of Student's t with 3 degrees of
# freedom at most half as many tokens lie beyond as in between (tests/honest_tables.py), of routing flips as
# many at the least in the two generators of the self-test (November 2026).
TAIL_FROM = 9.0
MORE_THAN_A_TAIL = 0.75
# Of routing flips in the two generators of the self-test a third and more are likelier to the trainer (48 worlds,
# November 2026).
LEAST_LIKELIER, ONE_SIDED_BY_CHANCE = 0.1, 0.01
# A part of the excess this sure, and large enough to be named, is another cause at work.
SURE = 5e-3


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the excess in a few tokens that no covariate singles out."""
    excess = evidence.excess
    if excess is None:
        return NotTested("no mismatch to explain")
    if evidence.meaning is not None and evidence.meaning.theta_report.filtered:
        return NotTested("tokens at the edge of the sampler's filter are outliers as well")
    # A routing flip follows no covariate: flips are counted among tokens that none of them moves.
    quiet_T = ~_loud(excess)
    far_T = quiet_T & excess.outlier_T & ~one_step_off(evidence)
    count = int(far_T.sum())
    standardised_T = np.nan_to_num(excess.standardised_T)
    between = int((quiet_T & (standardised_T > TAIL_FROM) & ~excess.outlier_T).sum())
    one_kind = _of_one_kind(evidence, far_T)
    squared_T = np.square(evidence.log_ratio_T)
    # As many flips per token are to be expected among tokens in which another cause drowns them.
    flipped = float(squared_T[far_T].sum()) / max(float(quiet_T.mean()), 1e-300)
    theirs = min(flipped / max(float(squared_T[excess.outlier_T].sum()), 1e-300), 1.0)
    share, low, high = (theirs * value for value in excess.share(excess.outliers))
    p_value = float(bdtrc(count - 1, int(quiet_T.sum()), ORDINARY_SHARE)) if count else 1.0
    k2, k2_low, k2_high = (theirs * value for value in excess.outliers.ends)
    return k2_signature(
        (k2, k2_low, k2_high),
        (share, low, high),
        p_value=max(p_value, math.ulp(0.0)) if count else 1.0,
        large=not one_kind
        and share >= LEAST_OUTLIER_SHARE
        and low >= SURELY
        and count >= FEWEST
        and count > MORE_THAN_A_TAIL * between,
        because=f"{count / max(evidence.tokens, 1):.2%} of the tokens lie beyond six standard deviations{one_kind} and "
        "carry",
    )


def _of_one_kind(evidence: TokenEvidence, far_T: NDArray[np.bool_]) -> str:
    """Say what far tokens have in common that routing does not give them; "" for nothing.

    A flip meets any token, and makes some of them likelier.
    """
    count = int(far_T.sum())
    likelier = int((far_T & (evidence.log_ratio_T > 0)).sum())
    if float(bdtr(likelier, count, LEAST_LIKELIER)) < ONE_SIDED_BY_CHANCE:
        return ", nearly all of them less likely to the trainer,"
    last_T = np.append(evidence.sequence_T[1:] != evidence.sequence_T[:-1], True)
    if 2 * int((far_T & last_T).sum()) > count:
        return ", most of them the last of their sequence,"
    return ""


def _loud(excess: ExcessModel) -> NDArray[np.bool_]:
    """Return (T,) whether covariates that matter add more than everything else does."""
    sure = [
        name
        for name, part in excess.parts.items()
        if name != CONSTANT and part.p_value < SURE and excess.share(part)[0] >= LEAST_SHARE
    ]
    added_T = np.sum([excess.added_T[name] for name in sure], axis=0) if sure else np.zeros_like(excess.expected_T)
    return 2.0 * added_T > excess.expected_T


CAUSE = Cause(
    name=NAME,
    title="Mixture-of-experts routing flips",
    layer=Layer.INFERENCE_PATH,
    least=OF_OUTLIERS,
    signature=signature,
    falsifier="the same outliers in a dense model, or with routing replayed",
    next="replay the rollout's routing in the trainer, or look at the router's margins at these tokens",
)
