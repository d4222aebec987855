"""The importance ratio taken apart: what the policy update made of it, and what the backend.

    new / rollout  =  new / old   (policy update)  x  old / rollout   (backend mismatch, and staleness)

rollout: as the engine reported. old: recomputed by the trainer before the update. new: recomputed after it. Clipping
belongs on the first factor, a correction on the second; a clip fraction of the product blames the objective for the
backend.

Covered: clip fractions of each factor at the user's epsilons, how much of the second factor comes with the version lag,
and what each published correction of w = exp(old - rollout) would touch and leave, at the bounds of its authors:
    TIS        min(w, 2) per token (Yao et al., truncated importance sampling)
    MIS        tokens with w outside [1/2, 2] masked
    IcePop     tokens with w outside [0.5, 5] masked
    sequences  whole sequences masked whose geometric mean ratio leaves [0.99, 1.001] (Miles, slime)
Not covered: which correction learns best; a cost is the share of tokens it touches, not reward lost.
A correction is recommended only if semantics and inference path match: over a broken backend it would hide it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.diagnosis.consequence import NOTICEABLE_CLIPPING
from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings
from rlaudit.statistics.metrics.ppo_clip_fraction import is_clipped
from rlaudit.statistics.resample import REPLICATES, cluster_sums, cluster_weights, ratio, resampled, unseen
from rlaudit.tokens.pairs import LogprobPairs, importance_ratio
from rlaudit.tokens.token_batch import TokenBatch

TIS_BOUND = 2.0
MIS_BOUNDS = (0.5, 2.0)
ICEPOP_BOUNDS = (0.5, 5.0)
SEQUENCE_BOUNDS = (0.99, 1.001)
UPDATE, BACKEND, BOTH = "policy update", "backend", "both"
# Share of tokens up to which a mask takes little from learning; a truncation would keep them all.
SPARSE = 0.02


@dataclass(frozen=True)
class Share:
    """A share with a 95 % percentile interval over prompts (None with fewer than two prompts)."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class FactorFigures:
    """One factor of the ratio."""

    # In nats^2.
    k2: float
    # Share of tokens (ppo) and of sequences (gspo) outside the clip range, for any advantage.
    clipped: Mapping[str, Share]
    # Share of tokens whose advantage makes the clip bind; None without advantages.
    binding: Share | None


@dataclass(frozen=True)
class CorrectionCost:
    """What a correction would cost."""

    name: str
    title: str
    # Share of tokens truncated or masked.
    touched: float
    # Of the tokens that keep their weight, nats^2.
    k2_left: float


@dataclass(frozen=True)
class Recommendation:
    """Which correction fits and what it costs, or why none is recommended."""

    correction: str | None
    because: str
    cost: CorrectionCost | None = None


UNDECIDED = Recommendation(None, "semantics and inference path do not both match: a correction would hide the reason")


@dataclass(frozen=True)
class ObjectiveSplit:
    """The ratio taken apart."""

    settings: ObjectiveSettings
    tokens: int
    sequences: int
    # Those that the columns allow.
    factors: Mapping[str, FactorFigures]
    # Of the mean squared log ratio of both, with the remainder in their covariance; None without `old_logprob`.
    update_share: float | None
    backend_share: float | None
    # Share of the backend's k2 that is absent from tokens of lag 0; None if that is not known.
    staleness: Share | None
    corrections: tuple[CorrectionCost, ...]
    not_told: tuple[str, ...]
    recommendation: Recommendation = UNDECIDED


def objective_split(batch: TokenBatch, settings: ObjectiveSettings | None = None, seed: int = 0) -> ObjectiveSplit:
    """Split the ratio of the comparable tokens of a batch, and recommend nothing yet.

    The trainer's logprobs are the new policy's if the batch has `old_logprob`, else the old one's. Raises ValueError
    for a batch without a comparable token.
    """
    settings = settings or ObjectiveSettings()
    usable_T = batch.comparable_T & np.isfinite(batch.rollout_logprobs_T) & np.isfinite(batch.trainer_logprobs_T)
    old_T = batch.token_columns.get("old_logprob")
    if old_T is not None:
        usable_T = usable_T & np.isfinite(np.asarray(old_T, dtype=np.float64))
    if not usable_T.any():
        raise ValueError("there is no comparable token")
    both = _pairs(batch, batch.rollout_logprobs_T, batch.trainer_logprobs_T, usable_T)
    advantage_T = batch.column("advantage", usable_T)
    pairs = {BACKEND: both}
    not_told = []
    if old_T is None:
        not_told.append("policy update and backend mismatch cannot be separated: the column old_logprob is missing")
    else:
        old_T = np.asarray(old_T, dtype=np.float64)
        update = _pairs(batch, old_T, batch.trainer_logprobs_T, usable_T)
        pairs = {UPDATE: update, BACKEND: _pairs(batch, batch.rollout_logprobs_T, old_T, usable_T), BOTH: both}
    if advantage_T is None:
        not_told.append("it is unknown which clips change the gradient: the column advantage is missing")
    factors = {name: _figures(factor_pairs, settings, advantage_T, seed) for name, factor_pairs in pairs.items()}
    lag_T = _lag(batch, usable_T)
    staleness = None if lag_T is None else _staleness(pairs[BACKEND], lag_T, seed)
    if staleness is None:
        why = "the columns rollout_version and trainer_version are missing"
        if lag_T is not None:
            why = (
                "every token has lag 0"
                if (lag_T <= 0).all()
                else "no token has lag 0, so nothing fresh can be compared"
            )
        not_told.append(f"the share of staleness is unknown: {why}")
    total = 2.0 * factors[BOTH].k2 if BOTH in factors else 0.0
    return ObjectiveSplit(
        settings=settings,
        tokens=both.tokens,
        sequences=both.sequences,
        factors=factors,
        update_share=2.0 * factors[UPDATE].k2 / total if total > 0 else None,
        backend_share=2.0 * factors[BACKEND].k2 / total if total > 0 else None,
        staleness=staleness,
        corrections=correction_costs(pairs[BACKEND]),
        not_told=tuple(not_told),
    )


def _pairs(batch: TokenBatch, first_T: Floats, second_T: Floats, usable_T: NDArray[np.bool_]) -> LogprobPairs:
    return LogprobPairs(first_T, second_T, batch.sequence_T, batch.prompt_S).keep(usable_T)


def _lag(batch: TokenBatch, usable_T: NDArray[np.bool_]) -> Floats | None:
    trainer_T, rollout_T = (batch.column(name, usable_T) for name in ("trainer_version", "rollout_version"))
    return None if trainer_T is None or rollout_T is None else trainer_T - rollout_T


def _figures(pairs: LogprobPairs, settings: ObjectiveSettings, advantage_T: Floats | None, seed: int) -> FactorFigures:
    low, high = settings.ppo_epsilon_low, settings.ppo_epsilon_high
    outside_T = is_clipped(pairs.log_ratio_T, low, high).astype(np.float64)
    lengths_S = np.maximum(pairs.sequence_lengths_S, 1)
    geometric_S = pairs.sequence_log_ratio_S / lengths_S
    gspo_S = is_clipped(geometric_S, settings.gspo_epsilon_low, settings.gspo_epsilon_high).astype(np.float64)
    binding = None
    if advantage_T is not None:
        up_T = pairs.log_ratio_T > 0
        binds_T = np.where(up_T, advantage_T > 0, advantage_T < 0) & (outside_T > 0)
        binding = _share(binds_T.astype(np.float64), pairs.prompt_T, seed)
    return FactorFigures(
        k2=0.5 * float(np.square(pairs.log_ratio_T).mean()),
        clipped={
            "ppo": _share(outside_T, pairs.prompt_T, seed),
            "gspo": _share(gspo_S, pairs.prompt_S, seed),
        },
        binding=binding,
    )


def _share(numerator: Floats, prompts: NDArray[np.int64], seed: int, denominator: Floats | None = None) -> Share:
    """Return the numerator's sum over the denominator's, or over the number of rows; resampled by prompt."""
    denominator = np.ones(len(numerator)) if denominator is None else denominator
    names, cluster = np.unique(prompts, return_inverse=True)
    sums_PJ = cluster_sums((numerator, denominator), cluster, len(names))
    share = resampled(sums_PJ, cluster_weights(len(names), REPLICATES, seed), ratio)
    if len(names) < 2:
        return Share(share.value, None, None)
    low, high = share.percentiles()
    return Share(share.value, low, high if share.value > 0 else unseen(len(names)))


def _staleness(pairs: LogprobPairs, lag_T: Floats, seed: int) -> Share | None:
    """Return 1 - k2 at lag 0 / k2 of all: what would go if every token were fresh."""
    fresh_T = lag_T <= 0
    if fresh_T.all() or not fresh_T.any():
        return None
    squared_T = np.square(pairs.log_ratio_T)
    whole = float(squared_T.mean())
    if whole == 0:
        return Share(0.0, None, None)
    fresh = _share(squared_T * fresh_T, pairs.prompt_T, seed, fresh_T.astype(np.float64))
    ends = [None if end is None else float(np.clip(1.0 - end / whole, 0.0, 1.0)) for end in (fresh.high, fresh.low)]
    return Share(float(np.clip(1.0 - fresh.value / whole, 0.0, 1.0)), *ends)


def recommended(split: ObjectiveSplit, earlier: tuple[Verdict, Verdict]) -> ObjectiveSplit:
    """Return the split with its recommendation. earlier: verdicts of the semantic layer and of the inference path."""
    clean = all(verdict.passes for verdict in earlier)
    return replace(split, recommendation=_recommend(split) if clean else UNDECIDED)


def _recommend(split: ObjectiveSplit) -> Recommendation:
    backend, settings, staleness = split.factors[BACKEND], split.settings, split.staleness
    by_name = {cost.name: cost for cost in split.corrections}
    ppo, gspo = backend.clipped["ppo"], backend.clipped["gspo"]
    tokens = ppo.value if Clip.TOKENS in settings.clips else 0.0
    sequences = gspo.value if Clip.SEQUENCES in settings.clips else 0.0
    if max(tokens, sequences) <= NOTICEABLE_CLIPPING:
        return Recommendation(
            None,
            f"the backend alone moves {100 * ppo.value:.2f} % of tokens and {100 * gspo.value:.2f} % of sequences out "
            "of range",
        )
    mostly_stale = staleness is not None and staleness.value > 0.5
    why = "mostly staleness, which fresher rollouts remove; " if mostly_stale else ""
    if sequences > NOTICEABLE_CLIPPING >= tokens:
        chosen = by_name["sequence"]
        why += "whole sequences drift while tokens stay in range"
    elif by_name["mis"].touched <= SPARSE and by_name["icepop"].k2_left < 0.5 * backend.k2:
        chosen = min((by_name["icepop"], by_name["mis"]), key=lambda cost: cost.touched)
        why += "a few tokens carry most of the mismatch: mask them rather than truncate all"
    elif by_name["tis"].touched <= by_name["mis"].touched:
        chosen = by_name["tis"]
        why += "many tokens are a little off"
    else:
        chosen = by_name["mis"]
        why += "ratios are off in both directions"
    return Recommendation(
        chosen.name, f"{why}; {chosen.title} would change {100 * chosen.touched:.2f} % of the tokens", chosen
    )


def correction_costs(pairs: LogprobPairs) -> tuple[CorrectionCost, ...]:
    """Return what each correction costs on the ratio of `pairs`."""
    ratio_T = importance_ratio(pairs.log_ratio_T)
    lengths_S = np.maximum(pairs.sequence_lengths_S, 1)
    geometric_T = importance_ratio(pairs.sequence_log_ratio_S / lengths_S)[pairs.sequence_T]
    masks = (
        ("mis", "a mask of tokens (MIS) whose ratio is not", ratio_T, MIS_BOUNDS),
        ("icepop", "IcePop", ratio_T, ICEPOP_BOUNDS),
        ("sequence", "a mask of sequences whose geometric mean ratio is not", geometric_T, SEQUENCE_BOUNDS),
    )
    costs = [_cost("tis", f"token TIS, C={TIS_BOUND:g}", pairs.log_ratio_T, ratio_T > TIS_BOUND)]
    for name, title, bounded_T, (low, high) in masks:
        masked_T = (bounded_T < low) | (bounded_T > high)
        costs.append(_cost(name, f"{title} in [{low:g}, {high:g}]", pairs.log_ratio_T, masked_T))
    return tuple(costs)


def _cost(name: str, title: str, log_ratio_T: Floats, touched_T: NDArray[np.bool_]) -> CorrectionCost:
    left_T = log_ratio_T[~touched_T]
    return CorrectionCost(
        name=name,
        title=title,
        touched=float(touched_T.mean()),
        k2_left=0.5 * float(np.square(left_T).mean()) if left_T.size else 0.0,
    )
