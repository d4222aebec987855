"""A column of entropies that cannot be those of the distribution that the trainer's logprobs are of.

A token of probability p leaves 1 - p for all others, so its distribution has an entropy of at least h(p) = -p ln p -
(1-p) ln(1-p), if one token has the rest, and of at most h(p) + (1-p) ln V, if all others share it evenly.
Covered: a column that was never filled (0 everywhere), another scale (bits), logits before the temperature, entropies
of other rows. Tokens drawn from a distribution surprise by its entropy on average, at any size: entropies in bits
are log2(e) times that at every size, and no temperature does that.
Not covered: entropies off by less than rounding, which would be no other verdict either.
"""

import math
from collections.abc import Iterator

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.tokens.column_range import ENTROPY_ROUNDING, LARGEST_VOCABULARY
from rlaudit.tokens.first_look import Check, Finding
from rlaudit.tokens.token_batch import TokenBatch

COLUMN = "trainer_entropy"
FEWEST, FEWEST_SEQUENCES = 8, 2
# Nats. Sums of a float32 softmax over a vocabulary are off by less; of a coarse column ENTROPY_ROUNDING.
ROUNDING = 0.01
# Of the tokens: a few rows of a log are always odd.
SHARE = 0.01
# A column of three digits has so few different numbers in a thousand.
DISTINCT = 0.5
BITS = 1.0 / math.log(2.0)
# Bins of entropy, and tokens in each, in which the scale is held against BITS.
BINS, FEWEST_IN_BIN = 4, 200
# Where two tokens have nearly all the mass, an entropy is the least that it can be; in bits it is BITS times that.
# Nats of that least from which on a ratio is known, how near, and how many more lie at the bound than below it.
SURE_OF_A_RATIO, AT_THE_BOUND, TIMES_BELOW = 0.05, 0.01, 10
# Of a scale: all bins lie within so much of it, and the error of all together is less.
SCALE_NEAR, SCALE_ERROR = 0.1, 0.03


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the column of entropies if it does not fit."""
    if COLUMN not in batch.token_columns:
        return
    entropy_T = np.asarray(batch.token_columns[COLUMN], dtype=np.float64)
    usable_T = batch.comparable_T & np.isfinite(entropy_T) & (batch.trainer_logprobs_T <= 0.0)
    usable_T &= np.isfinite(batch.trainer_logprobs_T)
    logprobs_T, entropy_T, sequence_T = (
        batch.trainer_logprobs_T[usable_T],
        entropy_T[usable_T],
        batch.sequence_T[usable_T],
    )
    if len(entropy_T) < FEWEST:
        return
    least_T, most_T = bounds(logprobs_T)
    slack = ENTROPY_ROUNDING if _coarse(logprobs_T) or _coarse(entropy_T) else ROUNDING
    for broken_T, words in (
        (entropy_T < least_T - slack, "below the least"),
        (entropy_T > most_T + slack, "above the most"),
    ):
        count = int(broken_T.sum())
        if count < max(FEWEST, SHARE * len(entropy_T)) or len(np.unique(sequence_T[broken_T])) < FEWEST_SEQUENCES:
            continue
        yield Finding(_sentence(entropy_T, count, words), unused=(COLUMN,))
        return
    in_bits = _near_bits(*_scale(logprobs_T, entropy_T)) and _bounded_in_bits(least_T, entropy_T)
    if in_bits or _in_bits(logprobs_T, entropy_T):
        yield Finding(
            f"column {COLUMN} is not used: it is in bits, {BITS:.2f} times what it would be in nats. Log it in nats",
            unused=(COLUMN,),
        )


def bounds(logprobs_T: Floats) -> tuple[Floats, Floats]:
    """Return (T,) the least and the most entropy, in nats, of a distribution that gives a token this logprob."""
    p_T = np.exp(np.minimum(logprobs_T, 0.0))
    room_T = -np.expm1(np.minimum(logprobs_T, 0.0))
    least_T: Floats = -p_T * logprobs_T - np.where(room_T > 0, room_T * np.log(np.maximum(room_T, 1e-300)), 0.0)
    return least_T, least_T + room_T * math.log(LARGEST_VOCABULARY)


def _sentence(entropy_T: Floats, count: int, words: str) -> str:
    if not entropy_T.any():
        return (
            f"column {COLUMN} is not used: it is 0 in all {len(entropy_T)} tokens, {count} of which are not sure. Log "
            "the entropy, in nats, of the distribution that trainer_logprob is of"
        )
    return (
        f"column {COLUMN} is not used: in {count} of {len(entropy_T)} tokens it is {words} that this trainer_logprob "
        "allows (logits before the temperature, another unit, other rows). Log the entropy, in nats, of the "
        "distribution that trainer_logprob is of"
    )


def _coarse(values_T: Floats) -> bool:
    """Return whether a column has few different numbers, as one of bfloat16 or of three digits."""
    away_T = values_T[np.abs(values_T) > ROUNDING][:1000]
    return len(away_T) > 0 and len(np.unique(away_T)) < DISTINCT * len(away_T)


def _bounded_in_bits(least_T: Floats, entropy_T: Floats) -> bool:
    """Return whether entropies lie at BITS times the least that they can be in nats, and hardly any below."""
    known_T = least_T > SURE_OF_A_RATIO
    ratio_T = entropy_T[known_T] / least_T[known_T]
    at_the_bound = int((np.abs(ratio_T / BITS - 1.0) < AT_THE_BOUND).sum())
    below = int((ratio_T < (1.0 - AT_THE_BOUND) * BITS).sum())
    return at_the_bound >= max(FEWEST, TIMES_BELOW * below)


def _in_bits(logprobs_T: Floats, entropy_T: Floats) -> bool:
    """Return whether entropies are BITS times what tokens surprise, in every bin of entropy."""
    order = np.argsort(entropy_T)
    order = order[entropy_T[order] > ROUNDING]
    if len(order) < BINS * FEWEST_IN_BIN:
        return False
    for part in (order, *np.array_split(order, BINS)):
        scale, error = _scale(logprobs_T[part], entropy_T[part])
        if not _near_bits(scale, error) or (part is order and error > SCALE_ERROR * scale):
            return False
    return True


def _scale(logprobs_T: Floats, entropy_T: Floats) -> tuple[float, float]:
    """Return how many times what tokens surprise their entropies are, and the error of that."""
    surprise_T = -logprobs_T
    scale = float(entropy_T.sum() / max(surprise_T.sum(), 1e-300))
    return scale, scale * float(surprise_T.std()) / max(float(surprise_T.mean()), 1e-300) / math.sqrt(len(surprise_T))


def _near_bits(scale: float, error: float) -> bool:
    return BITS / (1.0 + SCALE_NEAR) - 2 * error <= scale <= BITS * (1.0 + SCALE_NEAR) + 2 * error


CHECK = Check("unfitting-entropies", look)
