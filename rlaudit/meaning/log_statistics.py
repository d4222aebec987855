"""What the columns of a log show of the three meanings: statistics of its tokens, with intervals over prompts.

Of the engine alone: whether its first choices are drawn as often as it reports. Of both sides: the ratio of their
temperatures, the sharpness of the tokens, the mean ratio, how one-sided the log ratio is, what tokens seen before have
in common, one and the same shift. A column that is missing makes its statistic None.

Source: the pair test of Tinker's cookbook (validate_temperature_logprobs); TRL 7269 for the shape of a missing mask.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.meaning.sharpness import Sharpness, sharpness
from rlaudit.meaning.token_evidence import TokenEvidence, once
from rlaudit.meaning.token_tests import ALPHA, TEMPERATURE_EFFECT
from rlaudit.statistics.estimate import Estimate, estimate_of
from rlaudit.statistics.measurement.metric import FLOAT32_RESOLUTION
from rlaudit.statistics.resample import FEWEST_PROMPTS, cluster_sums, sums_left

FEWEST_POSITIONS = 64
# Tokens count as equally likely within so many nats of the log odds, if at least so many others are there.
STRATUM, FEWEST_IN_STRATUM = 0.5, 32
MOST_LOG_ODDS = 15.0
# Nats: the far tail, where engines differ most, does not decide.
NEAR_THE_TOP = 8.0
# Rounding makes log ratios of both signs; a missing mask only negative ones.
ONE_SIDED = 0.95
# Relative: log ratios of logprobs that were stored with three digits still count as one number.
ALIKE = 1e-3


def sharpness_of(evidence: TokenEvidence) -> Sharpness | None:
    """Compare the sample with the trainer, by the trainer's entropies; None if they were not recorded.

    If ends of sequence are missing: with them or without, whichever is farther off; None if that decides.
    """
    entropy_T = evidence.columns.get("trainer_entropy")
    if entropy_T is None or not np.isfinite(entropy_T).all() or evidence.clusters < 2:
        return None
    # Noise on logits moves a logprob in proportion to 1 - p.
    room = float(np.square(evidence.room_T).sum())
    noise = float(np.square(evidence.log_ratio_T).sum()) / room if room > 0 else 0.0
    entropy_T, logprobs_T = np.asarray(entropy_T, dtype=np.float64), evidence.trainer_logprobs_T
    plain = sharpness(logprobs_T, entropy_T, evidence.cluster_T, evidence.clusters, noise)
    if not evidence.ends_missing:
        return plain
    # Of draws that did not end the trainer gives p, and should give p / (1 - e).
    left = 1.0 - np.minimum(evidence.ends_missing, -np.expm1(np.minimum(logprobs_T, 0.0)))
    ended_T = np.where(left < 1.0, (1.0 - left) * np.log(np.maximum(1.0 - left, 1e-300)), 0.0)
    entropy_of_others_T = np.maximum((entropy_T + ended_T) / left + np.log(left), 0.0)
    others = sharpness(logprobs_T - np.log(left), entropy_of_others_T, evidence.cluster_T, evidence.clusters, noise)
    off = [side.shows(TEMPERATURE_EFFECT, ALPHA) for side in (plain, others)]
    if all(off):
        return plain if plain.inverse_step * others.inverse_step > 0 else None
    return None if any(off) else max(plain, others, key=lambda side: abs(side.inverse_step))


def reported_step(evidence: TokenEvidence) -> float | None:
    """Return how far the report's 1/T is from the trainer's, relative, by the trainer's entropies; None without them.

    It is the slope of log r - log t (report, trainer) on log t + H. Tokens that were drawn from the report have the
    same `sharpness`, to first order and for any difference of r and t: both are the covariance of log r - log t with
    log t. Tokens that were drawn from something else do not.
    """
    entropy_T = evidence.columns.get("trainer_entropy")
    if entropy_T is None or not np.isfinite(entropy_T).all():
        return None
    score_T = evidence.trainer_logprobs_T + entropy_T
    squares = float(np.square(score_T).sum())
    return -float((evidence.log_ratio_T * score_T).sum()) / squares if squares > 0 else None


@once
def first_choice_excess(evidence: TokenEvidence) -> Estimate | None:
    """Report against sample: share of tokens that are the reported first choice, less the mass reported for it.

    No trainer is needed: tokens sampled at T below 1, or through a filter, are the first choice more often than raw
    logprobs say. A right report fits its tokens, no matter what the trainer recomputes. None without top logprobs.
    The greedy-leak test of `token_tests.py`, with the reported distribution in place of the trainer's.
    """
    if evidence.missing(("rollout_top_ids", "rollout_top_logprobs", "token_id")) or evidence.clusters < FEWEST_PROMPTS:
        return None
    ids_TK, logprobs_TK = evidence.tops["rollout_top_ids"], evidence.tops["rollout_top_logprobs"]
    if not logprobs_TK.shape[1]:
        return None
    best_T = np.argmax(logprobs_TK, axis=1)
    rows = np.arange(evidence.tokens)
    excess_T = (ids_TK[rows, best_T] == evidence.token_id_T) - np.exp(logprobs_TK[rows, best_T])
    if not np.isfinite(excess_T).all():
        return None
    # Under a right report tokens are draws one by one: a first choice of mass m varies by m (1 - m), seen or not.
    mass_T = np.exp(logprobs_TK[rows, best_T])
    columns = (excess_T, np.ones(evidence.tokens), mass_T * (1.0 - mass_T))
    sums_PJ = cluster_sums(columns, evidence.cluster_T, evidence.clusters)
    return estimate_of(sums_PJ[:, :2], least_variance_P=sums_PJ[:, 2])


@once
def temperature_ratio(evidence: TokenEvidence) -> Estimate | None:
    """Return T_trainer / T_rollout from top logprobs of both sides; None if they share too few.

    Noise in the regressor draws a slope towards 0, so the factor lies between the slopes of either side on the other.
    If these differ from each other by more than from 1, it is no temperature that sets the sides apart.
    """
    if evidence.missing(("rollout_top_ids", "rollout_top_logprobs", "trainer_top_ids", "trainer_top_logprobs")):
        return None
    rollout, trainer, row = _shared_differences(evidence)
    if len(np.unique(row)) < FEWEST_POSITIONS:
        return None
    cluster = evidence.cluster_T[row]
    sums_PJ = cluster_sums((rollout**2, rollout * trainer, trainer**2), cluster, evidence.clusters)
    return _between(estimate_of(sums_PJ[:, 1:], null=1.0), estimate_of(sums_PJ[:, :2], null=1.0))


@dataclass(frozen=True)
class Removed:
    """What is gone of the difference between both sides' lists once one side is divided by the factor between them.

    Of one temperature that is nearly all. Other weights and penalties have a slope that is not 1, too, and stay.
    """

    # Of the difference of a typical pair, by medians, and of the squares, which a few rows may make.
    typical: float
    squares: float


def removed_by_temperature(evidence: TokenEvidence, factor: float) -> Removed:
    """Return what the factor T_trainer / T_rollout takes away. Needs top logprobs of both sides."""
    rollout, trainer, _ = _shared_differences(evidence)
    # Half of the factor on each side: what is left has the scale of what there was.
    before, after = rollout - trainer, rollout / factor**0.5 - trainer * factor**0.5
    typical, squares = (
        1.0 - float(measure(of_left)) / max(float(measure(of_all)), 1e-300)
        for measure, of_left, of_all in (
            (np.median, np.abs(after), np.abs(before)),
            (np.sum, np.square(after), np.square(before)),
        )
    )
    return Removed(typical, squares)


def _between(first: Estimate, second: Estimate) -> Estimate:
    """Return the geometric mean of two slopes on each other; the truth lies between them."""
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
    """Return how far the trainer's best token lies above others that both sides list, by each side; and the rows."""
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
    rollout, trainer = rollout_TK[row, 0] - rollout_TK[row, column], trainer_TK[row, 0] - trainer_TK[row, column]
    near = trainer < NEAR_THE_TOP
    return rollout[near], trainer[near], row[near]


def mean_ratio_minus_one(evidence: TokenEvidence) -> Estimate:
    """Return the mean importance ratio - 1, with p over prompts."""
    excess_T = np.expm1(np.minimum(evidence.log_ratio_T, 20.0))
    return mean_apart(evidence, excess_T, np.ones(evidence.tokens))


def too_high(evidence: TokenEvidence) -> Estimate | None:
    """Return the mean ratio - 1 if it is above 0: what was reported is then not what tokens were sampled from.

    E over the sampler of trainer / reported is 1 for a right report and any trainer, and below 1 if the sampler cut a
    tail that the trainer keeps.
    """
    excess = mean_ratio_minus_one(evidence)
    return excess if excess.value > 0 else None


@once
def one_sidedness(evidence: TokenEvidence) -> float:
    """Return the share of the summed squares of the log ratio that lies in tokens with a negative one."""
    squared_T = np.square(evidence.log_ratio_T)
    total = float(squared_T.sum())
    return float(squared_T[evidence.log_ratio_T < 0].sum()) / total if total > 0 else 0.5


def one_sidedness_left(evidence: TokenEvidence) -> Floats:
    """Return (K,) the same without each part of the prompts."""
    squared_T = np.square(evidence.log_ratio_T)
    columns = (np.where(evidence.log_ratio_T < 0, squared_T, 0.0), squared_T)
    left_KJ = sums_left(cluster_sums(columns, evidence.cluster_T, evidence.clusters))
    sided_K: Floats = np.divide(left_KJ[:, 0], left_KJ[:, 1], out=np.full(len(left_KJ), 0.5), where=left_KJ[:, 1] > 0)
    return sided_K


@dataclass(frozen=True)
class SeenShift:
    """How tokens that the sequence holds already differ from others.

    A penalty lifts seen tokens and lowers the others. If seen tokens, likelier than others, only react otherwise to
    something else, they stay where they are or the shift is small against their scatter.
    """

    # Mean log ratio over 1 - p of seen tokens, less that of others; positive if seen tokens are penalised.
    shift: Estimate
    # Of the squares of seen tokens, what a shift makes up that they show both alone and against the others.
    share: float


def seen_shift(evidence: TokenEvidence) -> SeenShift | None:
    """Return how tokens that the sequence holds already differ from others; None if too few do or do not."""
    if evidence.missing(("seen_before",)):
        return None
    seen_T = np.asarray(evidence.columns["seen_before"], dtype=bool)
    usable_T = evidence.room_T > 0.02
    if (usable_T & seen_T).sum() < FEWEST_POSITIONS or (usable_T & ~seen_T).sum() < FEWEST_POSITIONS:
        return None
    error_T = np.clip(evidence.log_ratio_T / np.maximum(evidence.room_T, 0.02), -3.0, 3.0)
    # Seen tokens are likelier than others, and noise and temperature move likely tokens otherwise than unlikely ones.
    compared_T, others_T = equally_likely(evidence.rollout_logprobs_T, usable_T & seen_T, usable_T & ~seen_T)
    if compared_T.sum() < FEWEST_POSITIONS:
        return None
    shift = mean_apart(evidence, error_T, compared_T, others_T)
    seen_errors = error_T[compared_T]
    explained = max(min(float(seen_errors.mean()), shift.value), 0.0) ** 2
    squares = float(np.square(seen_errors).mean())
    return SeenShift(shift, explained / squares if squares > 0 else 0.0)


def equally_likely(
    rollout_logprobs_T: Floats, ours_T: NDArray[np.bool_], others_T: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], Floats]:
    """Return those of ours that have others as likely, and weights (T,) that give the others their distribution.

    As likely: of one stratum of the log odds, which noise on logits moves evenly. Strata with hardly any others are
    left out, since nothing shows what these would do (post-stratification).
    """
    room_T = np.maximum(-np.expm1(np.minimum(rollout_logprobs_T, 0.0)), 1e-9)
    log_odds_T = np.clip(rollout_logprobs_T - np.log(room_T), -MOST_LOG_ODDS, MOST_LOG_ODDS)
    stratum_T = ((log_odds_T + MOST_LOG_ODDS) / STRATUM).astype(np.int64)
    strata = int(2 * MOST_LOG_ODDS / STRATUM) + 1
    theirs_S = np.bincount(stratum_T[others_T], minlength=strata)
    ours_T = ours_T & (theirs_S[stratum_T] >= FEWEST_IN_STRATUM)
    weight_S = np.bincount(stratum_T[ours_T], minlength=strata) / np.maximum(theirs_S, 1)
    return ours_T, np.where(others_T, weight_S[stratum_T], 0.0)


def mean_apart(
    evidence: TokenEvidence, values_T: Floats, kept_T: Floats | NDArray[np.bool_], less_T: Floats | None = None
) -> Estimate:
    """Return the mean of `values_T` weighted with `kept_T`, less that weighted with `less_T` if given."""
    columns = [values_T * kept_T, kept_T]
    if less_T is not None:
        columns += [values_T * less_T, less_T]
    return estimate_of(cluster_sums(columns, evidence.cluster_T, evidence.clusters))


@once
def constant_shift(evidence: TokenEvidence) -> float | None:
    """Return trainer - rollout in nats if it is not 0 and all tokens have it, those of one prompt at most excepted.

    No sampler, filter, temperature or rounding does that: a filter that is not replayed shifts by the log of the mass
    it kept, which differs from token to token; a temperature shifts sure tokens less than unsure ones; rounding has
    both signs. One number for all is a normaliser or an offset of one side: a vocabulary that was padded, a logprob of
    another base, a constant that was added.
    """
    if not evidence.tokens:
        return None
    shift = float(np.median(evidence.log_ratio_T))
    apart_T = np.abs(evidence.log_ratio_T - shift) > max(FLOAT32_RESOLUTION, ALIKE * abs(shift))
    elsewhere = len(np.unique(evidence.cluster_T[apart_T]))
    if abs(shift) <= FLOAT32_RESOLUTION or elsewhere > min(1, evidence.clusters - 1):
        return None
    return shift
