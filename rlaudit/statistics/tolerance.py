"""The tolerance factor: how far from the mean a limit must lie that a few runs decide for all runs like them.

Covered: quantities that are normal from run to run, or whose logarithms are: medians of curves are close to it, however
heavy the tails of their steps. Not covered: a history whose level drifts from run to run; its runs are not alike.
Why not mean + 3 standard deviations: of ten runs neither is known well, and such a limit is left by far more runs than
it says. The factor grows as runs get fewer: that is the price of few runs, in figures.
Source: Owen, "Tables for one-sided tolerance limits" (1958); Hahn & Meeker, "Statistical Intervals" (1991), 4.6.3.
"""

import math
from functools import cache

from scipy.stats import nct, norm


@cache
def tolerance_factor(count: int, beyond: float, confidence: float) -> float:
    """Return how many standard deviations of `count` values a one-sided limit lies from their mean.

    With a probability of `confidence` at most a share `beyond` of all values like them lies outside.
    Raises ValueError for fewer than two values, which have no spread.
    """
    if count < 2:
        raise ValueError(f"{count} values have no spread")
    root = math.sqrt(count)
    return float(nct.ppf(confidence, count - 1, norm.isf(beyond) * root)) / root
