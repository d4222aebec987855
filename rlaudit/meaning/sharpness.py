"""Are tokens as sharp as a distribution says they are? The mean of log pi(a) + H(pi), which is 0 if they came from pi.

It is the derivative of their log-likelihood in 1/T: positive if tokens were drawn sharper, negative if flatter.
Covered: collapsed policies. There a rare token of some ten nats pays for thousands of sure ones, and if none was drawn,
the sample's own variance does not show it. The model's probabilities do: of a token of probability p, with entropy H,
the variance of log pi is at least that of two values, this token's and one for all others,

    Var(log pi) >= (log p + H)^2 p / (1 - p),

by the law of total variance. The larger of this and of what the sample shows is the error, so that a deviation counts
only where tokens that surprise were to be expected in numbers.
Noise flattens: logits that differ by independent noise of variance s^2 sample as at 1/T lower by s^2 Cov(p, log p) /
Var(log p), s^2 / 2 at most (two values, as their odds become even). A caller whose distribution is off by noise gives
s^2: tokens that are flatter by so much show no other temperature.
Not covered: distributions that give every token the same, whose sharpness is nothing; their score is rounding.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.statistics.estimate import Estimate, estimate_of
from rlaudit.statistics.measurement.metric import FLOAT32_RESOLUTION
from rlaudit.statistics.resample import REACH, REACH_TO_ONE_SIDE, cluster_sums, sums_left

# Half a step of a float32 just below 1: a smaller 1 - p is rounding, and the variance it stands for would be nothing's.
LEAST_ROOM = 2.0**-25

# Of the smallest float64: what lies below it is no probability, and its square need not be one either.
SMALLEST_LOGPROB = math.log(math.ulp(0.0))


@dataclass(frozen=True, eq=False)
class Sharpness:
    """How sharp tokens are."""

    # The mean, nats.
    score: Estimate
    # A Newton step for the relative change of 1/T; positive if sharper.
    inverse_step: float
    # The step without each part of the prompts (`resample.py`).
    inverse_step_K: Floats
    # Variance of logits, nats^2.
    noise: float = 0.0
    # Standard error of the step.
    error: float = 0.0
    # How many prompts are behind it.
    clusters: int = 0

    def within(self, most: float) -> bool:
        """Return whether only smaller relative changes of 1/T, and what noise does, are left open.

        Two tests to one side each, of 5 % (Schuirmann 1987): a change just as large would have been seen in 95 of 100.
        """
        reach = REACH_TO_ONE_SIDE * self.error
        return -most - self.noise / 2.0 <= self.inverse_step - reach and self.inverse_step + reach <= most

    def shows(self, least: float, alpha: float) -> bool:
        """Return whether it is surprising and moves 1/T by more than `least` and noise, with any prompts left out."""
        return bool(self._large(least).all()) and self.score.shows(0.0, alpha=alpha)

    def leans(self, least: float, alpha: float) -> bool:
        """Return whether it shows with some prompts left out, and does not with all of them."""
        large = bool(self._large(least).any())
        some = self.score.leans(0.0, alpha=alpha) or self.score.shows(0.0, alpha=alpha)
        return large and some and not self.shows(least, alpha)

    def _large(self, least: float) -> NDArray[np.bool_]:
        """Return (1 + K,) whether the step is large, of all prompts and without each part of them."""
        step_K = np.append(self.inverse_step, self.inverse_step_K)
        least_K = np.where(step_K < 0.0, max(least, self.noise / 2.0), least)
        return np.asarray(np.abs(step_K) > least_K)


def sharpness(
    logprobs_T: Floats, entropy_T: Floats, cluster_T: Integers, clusters: int, noise: float = 0.0
) -> Sharpness:
    """Return how sharp tokens are. logprobs_T: under the distribution, finite. entropy_T: of it. noise: nats^2."""
    score_T = np.maximum(logprobs_T, SMALLEST_LOGPROB) + entropy_T
    room_T = np.maximum(-np.expm1(np.minimum(logprobs_T, 0.0)), LEAST_ROOM)
    stated_T = np.square(score_T) * (1.0 - room_T) / room_T
    columns = (score_T, np.ones(len(score_T)), np.square(score_T), stated_T)
    sums_PJ = cluster_sums(columns, cluster_T, clusters)
    # Tokens of a sampler that reports what it draws from are draws one by one, so their squares are a variance as well
    # as those of prompts.
    variance_P = np.maximum(sums_PJ[:, 2], sums_PJ[:, 3])
    score = estimate_of(sums_PJ[:, :2], least_variance_P=variance_P, resolution=FLOAT32_RESOLUTION)
    sums = sums_PJ.sum(axis=0)
    # Of sums, as the step is: the score's is that of a mean.
    error = (score.high - score.low) / 2.0 / REACH * float(sums[1]) / float(_information(sums))
    units = int((sums_PJ[:, 1] != 0).sum())
    return Sharpness(score, float(_step(sums)), _step(sums_left(sums_PJ)), noise, error, units)


def _step(sums: Floats) -> Floats:
    """Return the mean score over the variance of log pi, which is the Fisher information of 1/T."""
    step: Floats = sums[..., 0] / _information(sums)
    return step


def _information(sums: Floats) -> Floats:
    variance = np.maximum(np.maximum(sums[..., 2], sums[..., 3]), sums[..., 1] * FLOAT32_RESOLUTION**2)
    information: Floats = np.maximum(variance, 1e-300)
    return information
