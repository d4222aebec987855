"""The router chooses other experts for a few tokens, whose logprobs are then far off; all others stay as they were.

Covered: tokens whose log ratio is six standard deviations and more from what the other columns predict. Low precision
moves most tokens a little instead. Noise with heavy tails has values of every size in between. A local cause depends on
position or entropy. A routing flip can change any token of any sequence, and makes it likelier or less likely.
Outliers have other causes if they share sequences, token ids or a sign, end their sequences, or are the least likely.
Not covered: routing differences in most tokens, which look like low precision. Rollouts under a filter are not covered
either, as noise moves the edge of the filter and puts a few tokens far off.
Source: R3 (arXiv 2510.11370), which measured how many ratios are extreme; ms-swift and slime replay the routing.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, pdtrc

from rlaudit.arrays import Integers
from rlaudit.causes import chunk_boundary, placed_logprobs
from rlaudit.causes.attribution.cause import SURELY, Cause, NotTested, Outcome, Rival
from rlaudit.causes.attribution.part_signature import SHARE, k2_signature
from rlaudit.causes.attribution.rival_patterns import (
    NORMAL_MEDIAN,
    SURELY_ALIKE,
    errs_by_token,
    in_common,
    loud,
    moves_most_tokens,
)
from rlaudit.causes.attribution.semantic_signatures import PENALTY
from rlaudit.causes.head_precision import one_step_off
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_OUTLIERS
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.measurement.excess import LEAST_ROOM, ExcessModel

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
# Pairs of outliers in one sequence, over what chance puts there: flips meet 0.6 to 2.3 times as many, a replica with
# other weights at a tenth of the sequences ten times (simulated policies, November 2026).
MOST_PAIRS, PAIRS_BY_CHANCE = 2.5, 0.01
# Of the outliers of a token id, how far one sign prevails: 0 if both are as frequent, 1 if there is only one.
MOST_OF_ONE_SIGN = 0.5
# A tenth of all tokens are as unlikely as this; half of the outliers are not.
UNLIKELY, MOST_UNLIKELY = 0.1, 0.5
# Blocks of the cache have a multiple of so many tokens. Flips are as frequent at any place of a block.
BLOCK, MOST_AT_ONE_PLACE = 16, 0.5
# Of the error of a typical token: a flip moves logits by tenths of a nat, rounding by hundredths or less. Noise that
# one token in thirty has ten times as large is 10 to 15 times as far off (simulated policies, November 2026).
LEAST_TIMES_TYPICAL = 20.0


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 in a few tokens that no covariate singles out."""
    excess = evidence.excess
    if excess is None:
        return NotTested("no mismatch to explain")
    if evidence.meaning is not None and evidence.meaning.theta_report.filtered:
        return NotTested("tokens at the edge of the sampler's filter look like this as well")
    quiet_T, far_T = _flips(evidence, excess)
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
        because=f"{100 * count / max(evidence.tokens, 1):.2f} % of the tokens, beyond six standard deviations"
        f"{one_kind or ','} make {SHARE}",
    )


def _flips(evidence: TokenEvidence, excess: ExcessModel) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (T,) tokens that no covariate moves, among which flips are counted, and those that lie far off."""
    quiet_T = ~loud(excess)
    return quiet_T, quiet_T & excess.outlier_T & ~one_step_off(evidence)


def _of_one_kind(evidence: TokenEvidence, far_T: NDArray[np.bool_]) -> str:
    """Say what far tokens have in common that routing does not give them; "" for nothing.

    A flip meets any token, and makes some of them likelier.
    """
    count = int(far_T.sum())
    likelier = int((far_T & (evidence.log_ratio_T > 0)).sum())
    for number, kind in ((likelier, "less likely"), (count - likelier, "likelier")):
        if float(bdtr(number, count, LEAST_LIKELIER)) < ONE_SIDED_BY_CHANCE:
            return f", nearly all of them {kind} to the trainer,"
    last_T = np.append(evidence.sequence_T[1:] != evidence.sequence_T[:-1], True)
    if 2 * int((far_T & last_T).sum()) > count:
        return ", most of them the last of their sequence,"
    return ""


def _share_sequences(evidence: TokenEvidence) -> bool:
    """Return whether outliers lie in the same sequences more often than tokens do by chance."""
    assert evidence.excess is not None
    quiet_T, far_T = _flips(evidence, evidence.excess)
    quiet_T = quiet_T & (evidence.room_T > LEAST_ROOM)
    pairs, all_pairs = (_pairs(evidence.sequence_T[kept_T]) for kept_T in (far_T, quiet_T))
    far, quiet = float(far_T.sum()), float(quiet_T.sum())
    expected = all_pairs * far * (far - 1.0) / max(quiet * (quiet - 1.0), 1.0)
    return pairs > MOST_PAIRS * expected and float(pdtrc(pairs - 1.0, expected)) < PAIRS_BY_CHANCE


def _pairs(sequence_N: Integers) -> float:
    counts_S = np.bincount(sequence_N).astype(np.float64)
    return float((counts_S * (counts_S - 1.0)).sum()) / 2.0


def _share_signs(evidence: TokenEvidence) -> bool:
    """Return whether outliers of one token id have one sign in all prompts."""
    assert evidence.excess is not None
    _, far_T = _flips(evidence, evidence.excess)
    one_sign, z = in_common(np.where(far_T, np.sign(evidence.log_ratio_T), 0.0), far_T, evidence)
    return one_sign > MOST_OF_ONE_SIGN and z > SURELY_ALIKE


def _are_unlikely(evidence: TokenEvidence) -> bool:
    """Return whether both sides find most outliers less likely than nearly all tokens, as a bound makes them."""
    assert evidence.excess is not None
    quiet_T, far_T = _flips(evidence, evidence.excess)
    quiet_T = quiet_T & (evidence.room_T > LEAST_ROOM)
    likelier_T = evidence.rollout_logprobs_T + np.maximum(evidence.log_ratio_T, 0.0)
    return float((likelier_T[far_T] < np.quantile(likelier_T[quiet_T], UNLIKELY)).mean()) > MOST_UNLIKELY


def _lie_at_one_place(evidence: TokenEvidence) -> bool:
    """Return whether most outliers lie at one place of a block of tokens, wherever in the prompt blocks begin."""
    assert evidence.excess is not None
    _, far_T = _flips(evidence, evidence.excess)
    at_place = np.bincount(evidence.position_T[far_T].astype(np.int64) % BLOCK, minlength=BLOCK)
    return int(at_place.max()) > MOST_AT_ONE_PLACE * int(far_T.sum())


def _are_hardly_larger(evidence: TokenEvidence) -> bool:
    """Return whether outliers are no farther off than noise is that differs from token to token."""
    assert evidence.excess is not None
    quiet_T, far_T = _flips(evidence, evidence.excess)
    usable_T = quiet_T & (evidence.room_T > LEAST_ROOM)
    error_T = np.abs(evidence.log_ratio_T) / np.maximum(evidence.room_T, LEAST_ROOM)
    typical = float(np.median(error_T[usable_T]) / np.sqrt(NORMAL_MEDIAN)) if usable_T.any() else 0.0
    return float(np.median(error_T[far_T])) < LEAST_TIMES_TYPICAL * typical


RIVALS = (
    Rival(
        "stale weights in one replica of the fleet",
        _share_sequences,
        "log the replica and the rollout_version of each sequence, and compare the replicas",
    ),
    Rival(PENALTY, _share_signs, "write out no logit_bias and no penalty, and sample again"),
    Rival(placed_logprobs.NAME, _are_unlikely, "log logprobs without a bound or a constant added to probabilities"),
    Rival(
        chunk_boundary.NAME,
        _lie_at_one_place,
        "log the prompts' lengths or token ids, or sample once with chunked prefill off",
    ),
    Rival(
        "noise of the engine that differs from token to token",
        _are_hardly_larger,
        "score the same tokens with a dense model, or replay the rollout's routing in the trainer",
    ),
    Rival(
        "other weights, or dropout in the trainer",
        lambda evidence: moves_most_tokens(evidence, evidence.room_T >= 0.0) or errs_by_token(evidence),
        "score the same tokens twice in the trainer (dropout differs), and compare weight checksums of both sides",
    ),
)

CAUSE = Cause(
    name=NAME,
    title="Mixture-of-experts routing flips",
    layer=Layer.INFERENCE_PATH,
    least=OF_OUTLIERS,
    signature=signature,
    falsifier="a dense model, or replayed routing, has the same outliers",
    next="replay the rollout's routing in the trainer, or look at the router's margins at these tokens",
    rivals=RIVALS,
)
