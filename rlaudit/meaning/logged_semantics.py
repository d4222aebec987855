"""What logs alone tell of the semantic layer, where nobody scored the tokens under other meanings.

Covered: the temperature between both sides, from top logprobs of both (differences at one position share their
normaliser, so rollout differences = trainer differences * T_trainer / T_rollout); a filter that the trainer does not
replay, from one-sided log ratios; a penalty, from tokens seen before.
Not covered: hidden truncation under raw logprobs, and temperature from sampled logprobs alone. Those need scores.
Source: the pair test of Tinker's cookbook (validate_temperature_logprobs); TRL 7269 for the shape of a missing mask.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.attribution.token_evidence import TokenEvidence
from rlaudit.statistics.estimate import Estimate, estimate_of
from rlaudit.statistics.resample import cluster_sums, sums_left

FEWEST_POSITIONS = 64
STRATA = 8
# Relative difference of temperatures that would not be noticed.
TEMPERATURE_TOLERANCE = 0.03
LEAST_MEAN_RATIO = 1e-2
# Rounding makes log ratios of both signs; a missing mask only negative ones.
ONE_SIDED = 0.95


def temperature_ratio(evidence: TokenEvidence) -> Estimate | None:
    """T_trainer / T_rollout from top logprobs of both sides; None without enough shared ones.

    Noise in the regressor draws a slope towards 0, so the slopes of either side on the other have the factor between
    them. Where they differ from each other by more than from 1, it is no temperature that sets the sides apart.
    """
    if evidence.missing(("rollout_top_ids", "rollout_top_logprobs", "trainer_top_ids", "trainer_top_logprobs")):
        return None
    rollout, trainer, row = _shared_differences(evidence)
    if len(np.unique(row)) < FEWEST_POSITIONS:
        return None
    # Bounded, so that the far tail, where engines differ most, does not decide.
    near = trainer < 8.0
    rollout, trainer, cluster = rollout[near], trainer[near], evidence.cluster_T[row[near]]
    sums_PJ = cluster_sums((rollout**2, rollout * trainer, trainer**2), cluster, evidence.clusters)
    return _between(estimate_of(sums_PJ[:, 1:], null=1.0), estimate_of(sums_PJ[:, :2], null=1.0))


def _between(first: Estimate, second: Estimate) -> Estimate:
    """The geometric mean of two slopes on each other, which have the truth between them."""
    logs = [np.log(np.maximum(np.append(end.value, end.left_K), 1e-300)) for end in (first, second)]
    apart = np.abs(logs[0] - logs[1]) < np.minimum(np.abs(logs[0]), np.abs(logs[1]))
    ln_p = np.maximum(np.append(first.ln_p, first.ln_p_left_K), np.append(second.ln_p, second.ln_p_left_K))
    ln_p = np.where(apart & (logs[0] * logs[1] > 0), ln_p, 0.0)
    values = np.exp((logs[0] + logs[1]) / 2.0)
    return Estimate(
        value=float(values[0]),
        low=min(first.low, second.low),
        high=max(first.high, second.high),
        ln_p=float(ln_p[0]),
        left_K=values[1:],
        ln_p_left_K=ln_p[1:],
    )


def _shared_differences(evidence: TokenEvidence) -> tuple[Floats, Floats, Integers]:
    """Differences best - other of the trainer's best token and others that both sides list, and their positions."""
    tops = {name: np.asarray(values) for name, values in evidence.tops.items()}
    same_TKK = tops["trainer_top_ids"][:, :, None] == tops["rollout_top_ids"][:, None, :]
    same_TKK &= np.isfinite(tops["trainer_top_logprobs"])[:, :, None]
    same_TKK &= np.isfinite(tops["rollout_top_logprobs"])[:, None, :] & (tops["trainer_top_ids"] >= 0)[:, :, None]
    place_TK = same_TKK.argmax(axis=2)
    shared_TK = same_TKK.any(axis=2)
    rollout_TK = np.take_along_axis(tops["rollout_top_logprobs"], place_TK, axis=1).astype(np.float64)
    trainer_TK = tops["trainer_top_logprobs"].astype(np.float64)
    row, column = np.nonzero(shared_TK & shared_TK[:, :1])
    other = column > 0
    row, column = row[other], column[other]
    return rollout_TK[row, 0] - rollout_TK[row, column], trainer_TK[row, 0] - trainer_TK[row, column], row


def mean_ratio_minus_one(evidence: TokenEvidence) -> Estimate:
    """Mean importance ratio - 1, with p over prompts."""
    excess_T = np.expm1(np.minimum(evidence.log_ratio_T, 20.0))
    return _mean(evidence, excess_T, np.ones(evidence.tokens))


def too_high(evidence: TokenEvidence) -> Estimate | None:
    """The mean ratio - 1 where it is above 0: what was reported is then not what tokens were sampled from.

    E over the sampler of trainer / reported is 1 for an honest report whatever the trainer is, and below 1 where the
    sampler cut a tail that the trainer keeps.
    """
    found = mean_ratio_minus_one(evidence)
    return found if found.value > 0 else None


def one_sidedness(evidence: TokenEvidence) -> float:
    """Share of the summed squares of the log ratio that lies in tokens with a negative one."""
    squared_T = np.square(evidence.log_ratio_T)
    total = float(squared_T.sum())
    return float(squared_T[evidence.log_ratio_T < 0].sum()) / total if total > 0 else 0.5


def one_sidedness_left(evidence: TokenEvidence) -> Floats:
    """(K,) the same without each part of the prompts."""
    squared_T = np.square(evidence.log_ratio_T)
    columns = (np.where(evidence.log_ratio_T < 0, squared_T, 0.0), squared_T)
    left_KJ = sums_left(cluster_sums(columns, evidence.cluster_T, evidence.clusters))
    sided_K: Floats = np.divide(left_KJ[:, 0], left_KJ[:, 1], out=np.full(len(left_KJ), 0.5), where=left_KJ[:, 1] > 0)
    return sided_K


@dataclass(frozen=True)
class SeenShift:
    """shift: mean log ratio over 1 - p of tokens seen before, less that of others; positive where they are penalised.

    share: of the squares of seen tokens, what a shift makes up that is both their own and against the others. A penalty
    lifts seen tokens and lowers the others. Where seen tokens, likelier than others, only answer otherwise to something
    else, they stay where they are or the shift is small against their scatter.
    """

    shift: Estimate
    share: float


def seen_shift(evidence: TokenEvidence) -> SeenShift | None:
    """How tokens that the sequence holds already differ from others; None where too few do or do not."""
    if evidence.missing(("seen_before",)):
        return None
    seen_T = np.asarray(evidence.columns["seen_before"], dtype=bool)
    usable_T = evidence.room_T > 0.02
    if (usable_T & seen_T).sum() < FEWEST_POSITIONS or (usable_T & ~seen_T).sum() < FEWEST_POSITIONS:
        return None
    error_T = np.clip(evidence.log_ratio_T / np.maximum(evidence.room_T, 0.02), -3.0, 3.0)
    own = error_T[usable_T & seen_T]
    # Seen tokens are likelier than others, and a temperature moves likely tokens another way than unlikely ones.
    error_T = error_T - _usual(error_T, evidence.rollout_logprobs_T, usable_T & ~seen_T)
    found = _mean(evidence, error_T, usable_T & seen_T, usable_T & ~seen_T)
    both, squares = max(min(float(own.mean()), found.value), 0.0) ** 2, float(np.square(own).mean())
    return SeenShift(found, both / squares if squares > 0 else 0.0)


def _usual(values_T: Floats, rollout_logprobs_T: Floats, reference_T: NDArray[np.bool_]) -> Floats:
    """(T,) the mean value of reference tokens of about the same rollout logprob."""
    edges = np.quantile(rollout_logprobs_T[reference_T], np.linspace(0.0, 1.0, STRATA + 1)[1:-1])
    stratum_T = np.searchsorted(edges, rollout_logprobs_T)
    sums = np.bincount(stratum_T[reference_T], values_T[reference_T], minlength=STRATA)
    means: Floats = sums / np.maximum(np.bincount(stratum_T[reference_T], minlength=STRATA), 1)
    return means[stratum_T]


def _mean(evidence: TokenEvidence, values_T: Floats, kept_T: Floats, less_T: Floats | None = None) -> Estimate:
    columns = [values_T * kept_T, kept_T]
    if less_T is not None:
        columns += [values_T * less_T, less_T]
    return estimate_of(cluster_sums(columns, evidence.cluster_T, evidence.clusters))
