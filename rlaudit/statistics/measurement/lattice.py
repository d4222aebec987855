"""Were the logits behind these logprobs bfloat16? Read off one side alone, from its top-k logprobs.

Covered: two logprobs at one position share their normaliser, so temperature * (l_best - l_k) is the
difference of two logits. bfloat16 has 8 significant bits: logits in [2^e, 2^(e+1)) are multiples of
2^(e-7), that is 2^-6 in [2, 4), 2^-5 in [4, 8), 2^-3 in [16, 32). All of these are multiples of 2^-6, and
so are their differences; float32 logits hit such a multiple only by chance.
Not covered: logits below 2, where the steps are finer, and logprobs that were rounded when they were
stored: both give `unknown`. Penalties and biases take logits off the lattice, so ask without them.

float16 has 11 significant bits and its logits in [16, 32) are multiples of 2^-6 too. The next coarser step
tells them apart: only half of such differences are multiples of 2^-5, but all of bfloat16 logits from 4
on. float16 logits that are all 32 or more would pass for bfloat16 (those of SmolLM2-135M's five best tokens
run from 8.5 to 37.75).

Why not compare sizes of differences: the lattice shows one side without the other, and a head in
float32 on one side only can be worse than on none (NeMo-RL PR 3936, Fast-LLM PR 525).
Source: IEEE 754 and bfloat16 spacing; tolerance derived at `_tolerance`.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from rlaudit.arrays import Floats

BF16_STEP = 2.0**-6
COARSER_STEP = 2.0**-5
HALF_PRECISION_STEP = 2.0**-10
FLOAT32_EPSILON = 2.0**-23
# No published model's top logits are larger; smaller ones only make the tolerance generous.
LARGEST_LOGIT = 128.0
# Of 64 float32 differences all lie on the lattice by chance once in 10^140; sixteen values are more than one pair of
# tokens that a log repeats.
FEWEST_DIFFERENCES = 64
FEWEST_DISTINCT = 16
# Logits of an untrained model are so small that even bfloat16 steps escape; their differences are small too.
WIDE_ENOUGH = 2.0
# Of float32 logits 0.2 to 0.5 % hit by chance, of bfloat16 logits at and above 2 all do.
ON_THE_LATTICE = 0.98
OFF_THE_LATTICE = 0.2


class HeadPrecision(StrEnum):
    """What the lattice shows of the logits."""

    BF16 = "bf16"
    NOT_BF16 = "not bf16"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LatticeEvidence:
    """What a side's logit differences show."""

    # Share of differences that are multiples of 2^-6.
    hit_rate: float | None
    # How many were judged.
    differences: int
    # At which the lattice shows: the given one, or 1 if the logits were never divided by it.
    temperature: float
    verdict: HeadPrecision
    because: str


def lattice_hit_rate(top_logprobs_TK: ArrayLike, temperature: float) -> LatticeEvidence:
    """Judge the precision of the head from top-k logprobs (T, K) in nats, K >= 2, in float32 or better.

    temperature: what the logits were divided by before the log softmax (1 for raw logprobs). Entries that
    are -inf or NaN are left out. Raises ValueError for another shape or a temperature that is not above 0.
    """
    logprobs_TK = np.asarray(top_logprobs_TK, dtype=np.float64)
    if logprobs_TK.ndim != 2 or logprobs_TK.shape[1] < 2:
        raise ValueError(f"top_logprobs_TK must be (T, K) with K >= 2, found shape {logprobs_TK.shape}")
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be above 0, found {temperature}")
    best, other = _against_the_best(logprobs_TK)
    if best.size < FEWEST_DIFFERENCES:
        because = f"{best.size} differences, below {FEWEST_DIFFERENCES}"
        return _unknown(best.size, temperature, because)
    if _stored_rounded(np.concatenate([best, other])):
        return _unknown(best.size, temperature, "the logprobs themselves were rounded to 16 bits when stored")
    evidence = _judge(best, other, temperature)
    if evidence.verdict is HeadPrecision.BF16 or temperature == 1.0:
        return evidence
    # Raw logprobs, or a trainer that divides in bfloat16: then the lattice is there without the temperature.
    undivided = _judge(best, other, 1.0)
    return undivided if undivided.verdict is HeadPrecision.BF16 else evidence


def _against_the_best(logprobs_TK: Floats) -> tuple[Floats, Floats]:
    """Return the best logprob of each position beside each of its others, flat, of finite entries only."""
    finite_TK = np.isfinite(logprobs_TK)
    best_T = np.argmax(np.where(finite_TK, logprobs_TK, -np.inf), axis=1)
    others_TK = finite_TK.copy()
    others_TK[np.arange(len(logprobs_TK)), best_T] = False
    rows, columns = np.nonzero(others_TK)
    return logprobs_TK[rows, best_T[rows]], logprobs_TK[rows, columns]


def _judge(best: Floats, other: Floats, temperature: float) -> LatticeEvidence:
    differences = temperature * (best - other)
    tolerance = _tolerance(best, other, temperature)
    hit_rate = _hits(differences, BF16_STEP, tolerance)
    coarser = _hits(differences, COARSER_STEP, tolerance)
    finer = _hits(differences, HALF_PRECISION_STEP, tolerance)
    distinct = np.unique(np.rint(differences / HALF_PRECISION_STEP)).size
    if distinct < FEWEST_DISTINCT:
        verdict, because = HeadPrecision.UNKNOWN, f"{distinct} distinct differences, below {FEWEST_DISTINCT}"
    elif hit_rate >= ON_THE_LATTICE and coarser >= 0.75:
        verdict, because = HeadPrecision.BF16, f"{100 * hit_rate:.1f} % of logit differences are multiples of 2^-6"
    elif hit_rate >= ON_THE_LATTICE:
        verdict = HeadPrecision.UNKNOWN
        because = "a lattice of 2^-6 and nothing coarser: bfloat16 logits below 4, or float16 from 16 on"
    elif finer >= ON_THE_LATTICE:
        verdict, because = HeadPrecision.UNKNOWN, "a 16-bit lattice: float16, or bfloat16 logits below 2"
    elif differences.max() < WIDE_ENOUGH:
        verdict = HeadPrecision.UNKNOWN
        because = f"no two logits differ by {WIDE_ENOUGH:g}: too flat to know that they are not below 2"
    elif hit_rate <= OFF_THE_LATTICE:
        verdict, because = HeadPrecision.NOT_BF16, f"only {100 * hit_rate:.1f} % are multiples of 2^-6, as by chance"
    else:
        verdict = HeadPrecision.UNKNOWN
        because = f"{100 * hit_rate:.1f} % are multiples of 2^-6: penalties, biases, or logits of several precisions"
    return LatticeEvidence(
        hit_rate=hit_rate,
        differences=best.size,
        temperature=temperature,
        verdict=verdict,
        because=because,
    )


def _tolerance(best: Floats, other: Floats, temperature: float) -> Floats:
    """Return the most that float32 arithmetic moves temperature * (best - other) off the lattice.

    Dividing a logit z by the temperature errs by |z| / temperature * 2^-24, which the temperature here
    scales back to |z| * 2^-24, for each of two logits. Subtracting the maximum and then log-sum-exp rounds
    twice, by |l| * 2^-24 each. What log-sum-exp itself errs by is common to both and cancels.
    """
    return FLOAT32_EPSILON * (LARGEST_LOGIT + temperature * (np.abs(best) + np.abs(other)))


def _hits(differences: Floats, step: float, tolerance: Floats) -> float:
    remainder = np.abs(differences - step * np.rint(differences / step))
    return float((remainder <= tolerance).mean())


def _stored_rounded(logprobs: Floats) -> bool:
    """Return whether most logprobs are exact in 16 bits; of float32 values one in thousands is."""
    nonzero = logprobs[logprobs != 0].astype(np.float32)
    if not nonzero.size:
        return True
    as_bf16 = (nonzero.view(np.uint32) & 0xFFFF) == 0
    as_fp16 = nonzero.astype(np.float16).astype(np.float32) == nonzero
    return bool(as_bf16.mean() > 0.5 or as_fp16.mean() > 0.5)


def _unknown(differences: int, temperature: float, because: str) -> LatticeEvidence:
    return LatticeEvidence(None, differences, temperature, HeadPrecision.UNKNOWN, because)
