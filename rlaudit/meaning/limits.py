"""Limits of detection: how small a deviation may be that these logs would still have shown.

A limit is the deviation at which half of such logs get a verdict: the least effect that its test names, or, if that is
larger, what the test's interval and its level make of it. It comes from the interval that names the cause. At 1.5 times
the limit nearly all logs get the verdict, at half of it few (`limits_of_detection` of the evidence plants both: 40
of 40 and none; of a top-p 7 of 7 and 0 of 35, of a min-p 13 of 15 and 0 of 17, in 17 simulated logs, November 2026).

"Nothing found" is earned, for every figure that the columns have, where the limit is at most what matters most often
(LARGEST_*) and the figure itself is not off. Sixteen prompts in 64 sequences can earn it; of 64 prompts x 8 samples and
more, logs of nearly every model do. What the columns cannot show at any size is no matter of a limit, and is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, stdtrit

from rlaudit.meaning.from_siblings import Siblings
from rlaudit.meaning.sharpness import Sharpness
from rlaudit.meaning.siblings import Agreement
from rlaudit.meaning.token_tests import ALPHA, GREEDY_EFFECT, MEAN_RATIO_EFFECT, TEMPERATURE_EFFECT
from rlaudit.statistics.estimate import ALPHA as ALPHA_OF_ESTIMATES
from rlaudit.statistics.estimate import Estimate
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.statistics.resample import LEVEL, REACH

# A verdict has to stand without each part of the prompts, which takes so much more.
LEFT_OUT = 1.2
# Raw logprobs at T=.9, top-p .95 or top-k 20 that is not replayed move the mean ratio by more (TRL 7269: .965).
LARGEST_MEAN_RATIO = 0.02
# Of 1/T. The trade: samplers that were not meant are at T .6 to .8, or at a top-p that sharpens as much; 64 prompts x 8
# samples reach it without entropies where samples part early.
LARGEST_STEP = 0.3
# Of the mass that a filter takes, if no entropy shows it. The trade: tokens that no other sample drew count as cut, so
# that sound samples of flat contexts leave as much open; a repetition penalty of 1.3 leaves all of it open.
LARGEST_MASS = 0.4
# Of sequences; 29 of which none is shifted rule it out.
LARGEST_SHIFTED = 0.1
# Two-sided. A log has four such figures or more: at the level of the intervals beside them one log in five would be
# called off by chance alone. What is smaller than this stays below the limits that are stated.
SUSPICIOUS = 0.01


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The smallest deviations that would have been shown, each None if the columns cannot show it.

    mean_ratio: of the mean ratio from 1. inverse_temperature: relative, of the sampler's 1/T. temperature: the same as
    a difference of T. mass: share that a top-p cuts. top_p: tokens rule out any below. min_p: any above.
    top_k: any below.
    first_choices: of the share of first choices, more than reported. shifted: share of sequences. k3: nats, of the
    engine's distance. cannot_show: in sentences, at any size.
    """

    mean_ratio: float | None = None
    inverse_temperature: float | None = None
    temperature: float | None = None
    mass: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    top_k: int | None = None
    first_choices: float | None = None
    shifted: float | None = None
    k3: float | None = None
    cannot_show: Sequence[str] = ()


def smallest_named(error: float, least: float, units: int, alpha: float) -> float:
    """Return the deviation that a test names in half of such samples. units: prompts behind the error."""
    critical = float(stdtrit(max(units - 1, 1), 1.0 - alpha / 2.0))
    return max(least, LEFT_OUT * critical * error)


def suspicious(value: float, error: float, units: int, least: float) -> bool:
    """Return whether a figure that is named by nothing is off all the same, by half of what a test names."""
    return abs(value) > max(least / 2.0, float(stdtrit(max(units - 1, 1), 1.0 - SUSPICIOUS / 2.0)) * error)


def error_of(estimate: Estimate) -> float:
    """Return the standard error of an estimate."""
    return (estimate.high - estimate.low) / 2.0 / REACH


def mean_ratio_limit(ratio: Measurement) -> float | None:
    """Return the deviation from 1 that would be named: its interval lies beyond the least, and its score is high."""
    if ratio.low is None or ratio.high is None or not ratio.reliable:
        return None
    half = (ratio.high - ratio.low) / 2.0
    critical = float(stdtrit(1e6, 1.0 - ALPHA / 2.0))
    return max(MEAN_RATIO_EFFECT + half, critical * half / REACH)


def sharpness_limit(sharp: Sharpness) -> float:
    """Return the change of 1/T that the trainer's entropies would show."""
    return smallest_named(sharp.error, max(TEMPERATURE_EFFECT, sharp.noise / 2.0), sharp.clusters, ALPHA)


def siblings_limit(siblings: Siblings | None) -> float | None:
    """Return the change of 1/T that samples of one prompt would show on every side; None if they show nothing."""
    if siblings is None or not siblings.whole:
        return None
    return max(_step_limit(side) for side in siblings.sides.values())


def mass_limit(siblings: Siblings) -> float:
    """Return the mass that a top-p may cut before samples of one prompt show it, 1 if none would.

    A filter shows as a step of 1/T. Top-k and min-p cut flat contexts more than others, and show later.
    """
    return max(
        float(np.interp(_step_limit(side), side.cut_steps_G, side.cut_masses_G, right=1.0))
        for side in siblings.sides.values()
    )


def _step_limit(side: Agreement) -> float:
    return smallest_named(error_of(side.step), TEMPERATURE_EFFECT, side.prompts, ALPHA_OF_ESTIMATES)


def first_choices_limit(first: Estimate, units: int) -> float:
    """Return how much more often than reported first choices are drawn before that would be named."""
    return smallest_named(error_of(first), GREEDY_EFFECT, units, ALPHA_OF_ESTIMATES)


def shifted_limit(sequences: int, shifted: int) -> float:
    """Return the share of sequences that may be shifted, by Clopper and Pearson; the rule of three if none is."""
    if shifted >= sequences:
        return 1.0
    return float(betaincinv(shifted + 1, sequences - shifted, LEVEL))
