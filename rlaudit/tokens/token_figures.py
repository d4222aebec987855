"""All figures of one arm's tokens, or of one table's, to draw them from: sums and counts small enough for a report.

Covered: tokens that have a finite log ratio. Not covered: tokens outside what a replaying trainer keeps, which have
none; the report counts them. Of a table it is the sample in which causes are looked for, since drawing all would take
longer than comparing all; whether the two sides of a sequence meet is found out later, so that a shifted sequence is
drawn and is in none of the metrics.

Log ratios are counted in fixed bins, ten for each power of ten of |d| on both sides of zero and one for what is zero:
one scale shows float32 noise (1e-7) beside a wrong temperature (1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Ge
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypedDict

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import TokenBatch

PER_DECADE = 10
SMALLEST, LARGEST = -8, 2
SIZES = (LARGEST - SMALLEST) * PER_DECADE
# (SIZES + 1,) limits of |d|; what is below the first counts as zero, what is above the last as the last.
EDGES: Floats = 10.0 ** (SMALLEST + np.arange(SIZES + 1) / PER_DECADE)
# Positions 0, 1, 2, 3, then two groups for each doubling; the last takes the rest.
POSITION_LIMITS = (0, 1, 2, 3, *(base * 2**power // 2 for power in range(2, 20) for base in (2, 3)))
# Nats. An entropy of 0.01 is a token that could hardly have been another, ln 2 a coin.
ENTROPY_LIMITS = (0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
# Of rollout probability against trainer probability: tokens drawn at random, and groups of all.
DRAWN, GROUPS = 300, 10
# Lags beyond this are one group: a run that is this far off-policy is read by its mean, not by its lags.
FURTHEST = 64

Count = Annotated[int, Ge(0)]


TokenGroup = TypedDict(
    "TokenGroup",
    {"from": float, "below": float | None, "tokens": Count, "mean": float, "median": float, "p90": float},
)
"""|d| of the tokens of one group. from and below: its ends."""

ProbabilityGroup = TypedDict(
    "ProbabilityGroup",
    {"from": float, "below": float, "tokens": Count, "rollout": float, "trainer": float, "apart": float},
)
"""Tokens by the probability that the rollout gave them."""


@dataclass(frozen=True)
class Probabilities:
    """Probabilities of tokens. sample: [rollout, trainer] of tokens drawn at random."""

    sample: Sequence[tuple[float, float]]
    groups: Sequence[ProbabilityGroup]


@dataclass(frozen=True)
class Lag:
    """Tokens and mean |d| by trainer version - rollout version."""

    lag: int
    tokens: Count
    mean: float


@dataclass(frozen=True)
class TokenFigures:
    """Sums over every token that has a finite log ratio.

    block: null where the tokens are of a logged table. log_ratio: [low, high, tokens] by d = trainer - rollout logprob
    in nats; bins without tokens are left out. by_entropy, lags: null where the tokens carry none.
    """

    name: str
    block: str | None
    tokens: Count
    log_ratio: Sequence[tuple[float, float, Count]]
    by_position: Sequence[TokenGroup]
    by_entropy: Sequence[TokenGroup] | None
    probabilities: Probabilities
    lags: Sequence[Lag] | None


def token_figures(
    name: str,
    block: str | None,
    rollout_logprobs_T: Floats,
    trainer_logprobs_T: Floats,
    position_T: ArrayLike,
    entropy_T: ArrayLike | None = None,
    lag_T: ArrayLike | None = None,
) -> TokenFigures:
    """Return the figures of one arm's tokens, or of one table's; None for what the tokens do not have.

    Logprobs and entropy in nats. lag_T: trainer version minus rollout version, NaN if unknown.
    """
    kept_T = np.isfinite(rollout_logprobs_T) & np.isfinite(trainer_logprobs_T)
    rollout_T, trainer_T = rollout_logprobs_T[kept_T], trainer_logprobs_T[kept_T]
    log_ratio_T = trainer_T - rollout_T
    size_T = size_bins(log_ratio_T)
    density = signed_counts(log_ratio_T, size_T)

    def kept(column_T: ArrayLike) -> Floats:
        values_T: Floats = np.asarray(column_T, dtype=np.float64)[kept_T]
        return values_T

    bins = [(*signed_limits(place), int(density[place])) for place in np.flatnonzero(density).tolist()]
    return TokenFigures(
        name=name,
        block=block,
        tokens=int(kept_T.sum()),
        log_ratio=[(_four_digits(low), _four_digits(high), tokens) for low, high, tokens in bins],
        by_position=_grouped(log_ratio_T, size_T, kept(position_T), POSITION_LIMITS),
        by_entropy=None if entropy_T is None else _grouped(log_ratio_T, size_T, kept(entropy_T), ENTROPY_LIMITS),
        probabilities=_probabilities(rollout_T, trainer_T),
        lags=None if lag_T is None else _lags(log_ratio_T, kept(lag_T)),
    )


def logged_figures(logged: TokenBatch, trainer_excludes: bool) -> TokenFigures:
    """Return the figures of logged tokens: of sound sequences, those that the loss counts and the trainer scored."""
    # Broken sequences are named by the comparison; here they are only left out.
    batch = sound(logged, Path(), Faults(), trainer_excludes)
    counted_T = batch.comparable_T
    trainer_T, rollout_T = (batch.column(name, counted_T) for name in ("trainer_version", "rollout_version"))
    return token_figures(
        "",
        None,
        batch.rollout_logprobs_T[counted_T],
        batch.trainer_logprobs_T[counted_T],
        batch.position_T[counted_T],
        batch.column("trainer_entropy", counted_T),
        None if trainer_T is None or rollout_T is None else trainer_T - rollout_T,
    )


def size_bins(log_ratio_T: Floats) -> Integers:
    """Return (T,) 0 if |d| is below 1e-8, else 1 + its bin among EDGES."""
    with np.errstate(divide="ignore"):
        decade_T = np.log10(np.abs(log_ratio_T))
    sizes_T: Integers = np.clip(np.floor((decade_T - SMALLEST) * PER_DECADE) + 1, 0, SIZES).astype(np.int64)
    return sizes_T


def signed_counts(log_ratio_T: Floats, size_T: Integers) -> Integers:
    """Return (2 * SIZES + 1,) tokens in each bin, the most negative first. size_T: as of `size_bins`."""
    signed_T = np.where(log_ratio_T < 0, -size_T, size_T)
    return np.bincount(signed_T + SIZES, minlength=2 * SIZES + 1)


def signed_limits(place: int) -> tuple[float, float]:
    """Return low and high of a bin of `signed_counts`."""
    number = place - SIZES
    if number == 0:
        return -float(EDGES[0]), float(EDGES[0])
    low, high = float(EDGES[abs(number) - 1]), float(EDGES[abs(number)])
    return (low, high) if number > 0 else (-high, -low)


def quantile(counts: NDArray[np.integer], share: float) -> float:
    """Return |d| below which `share` of the tokens lie, log-linear in a bin. counts: (SIZES + 1,) by `size_bins`."""
    reached = np.cumsum(counts)
    wanted = share * reached[-1]
    place = int(np.searchsorted(reached, wanted))
    if place == 0:
        return 0.0
    inside = (wanted - reached[place - 1]) / counts[place]
    return float(10.0 ** (SMALLEST + (place - 1 + inside) / PER_DECADE))


def _grouped(log_ratio_T: Floats, size_T: Integers, values_T: Floats, limits: tuple[float, ...]) -> list[TokenGroup]:
    """Return a row of |d| for each group between `limits` that has tokens. values_T: NaN if missing."""
    finite_T = np.isfinite(values_T)
    group_T = np.maximum(np.searchsorted(limits, values_T[finite_T], side="right") - 1, 0)
    groups = len(limits)
    sums = np.bincount(group_T, np.abs(log_ratio_T[finite_T]), minlength=groups)
    counts = np.bincount(group_T * (SIZES + 1) + size_T[finite_T], minlength=groups * (SIZES + 1))
    counts = counts.reshape(groups, SIZES + 1)
    tokens = counts.sum(axis=1)
    return [
        {
            "from": limits[group],
            "below": limits[group + 1] if group + 1 < groups else None,
            "tokens": int(tokens[group]),
            "mean": _four_digits(sums[group] / tokens[group]),
            "median": _four_digits(quantile(counts[group], 0.5)),
            "p90": _four_digits(quantile(counts[group], 0.9)),
        }
        for group in np.flatnonzero(tokens).tolist()
    ]


def _probabilities(rollout_T: Floats, trainer_T: Floats) -> Probabilities:
    """`sample`: [rollout, trainer] of DRAWN tokens; `groups`: means of all tokens by the rollout's probability."""
    pairs_T2 = np.exp(np.minimum(np.stack([rollout_T, trainer_T], axis=1), 0.0))
    group_T = np.minimum((pairs_T2[:, 0] * GROUPS).astype(np.int64), GROUPS - 1)
    tokens = np.bincount(group_T, minlength=GROUPS)
    apart_T = np.abs(pairs_T2[:, 1] - pairs_T2[:, 0])
    rollout, trainer, apart = (
        np.bincount(group_T, values_T, minlength=GROUPS) for values_T in (pairs_T2[:, 0], pairs_T2[:, 1], apart_T)
    )
    drawn = np.argsort(np.random.default_rng(0).random(len(pairs_T2)), kind="stable")[:DRAWN]
    return Probabilities(
        sample=[(_four_digits(rollout), _four_digits(trainer)) for rollout, trainer in pairs_T2[drawn].tolist()],
        groups=[
            {
                "from": group / GROUPS,
                "below": (group + 1) / GROUPS,
                "tokens": int(tokens[group]),
                "rollout": _four_digits(rollout[group] / tokens[group]),
                "trainer": _four_digits(trainer[group] / tokens[group]),
                "apart": _four_digits(apart[group] / tokens[group]),
            }
            for group in np.flatnonzero(tokens).tolist()
        ],
    )


def _lags(log_ratio_T: Floats, lag_T: Floats) -> list[Lag]:
    """Return a row for each lag that has tokens; negative ones, which no clock allows, are one group before 0."""
    finite_T = np.isfinite(lag_T)
    place_T = np.clip(lag_T[finite_T].astype(np.int64), -1, FURTHEST) + 1
    tokens = np.bincount(place_T, minlength=FURTHEST + 2)
    sums = np.bincount(place_T, np.abs(log_ratio_T[finite_T]), minlength=FURTHEST + 2)
    return [
        Lag(lag=place - 1, tokens=int(tokens[place]), mean=_four_digits(sums[place] / tokens[place]))
        for place in np.flatnonzero(tokens).tolist()
    ]


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")
