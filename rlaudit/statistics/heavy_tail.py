"""How much further an interval must reach on the side of a heavy tail.

The standard error of a mean is itself estimated, from the squares of what each prompt contributes. Where few prompts
make up most of that sum, few degrees of freedom stand behind it, and the prompts that did not turn up lie on the side
to which the contributions are skewed. So that side gets Student's quantile at the effective number of prompts, the
other one at the geometric mean of that and their number.

Source: an average of P squares with kurtosis K varies like a chi-square with 2 P / (K - 1) degrees of freedom
(O'Neill, "Some Useful Moment Results in Sampling Problems", 2014). P / K is used, because samples of a heavy tail show
too small a kurtosis. Coverage with and without it: `resample.py`.
"""

import math

import numpy as np
from scipy.special import stdtrit

from rlaudit.arrays import Floats


def effective_prompts(influence_P: Floats) -> float:
    """Return how many prompts make up the variance, 1 to P: (Σ e²)² / Σ e⁴.

    influence_P: (P,) what each adds to the error.
    """
    squares_P = np.square(_scaled(influence_P))
    fourth = float(np.square(squares_P).sum())
    return float(squares_P.sum()) ** 2 / fourth if fourth > 0 else float(len(influence_P))


def student_quantiles(influence_P: Floats, level: float) -> tuple[float, float]:
    """Return how many standard errors an interval reaches down and up."""
    share, prompts = 0.5 + level / 2.0, len(influence_P)
    effective = min(max(effective_prompts(influence_P), 1.0), prompts - 1)
    heavy = float(stdtrit(effective, share))
    light = float(stdtrit(math.sqrt(effective * (prompts - 1)), share))
    left = float((_scaled(influence_P) ** 3).sum()) < 0
    return (heavy, light) if left else (light, heavy)


def widening(influence_P: Floats, level: float) -> tuple[float, float]:
    """Return factors for the lower and the upper reach of an interval that knows the skewness, not how sure it is."""
    ordinary = float(stdtrit(len(influence_P) - 1, 0.5 + level / 2.0))
    down, up = student_quantiles(influence_P, level)
    return down / ordinary, up / ordinary


def normal_reach(influence_P: Floats, level: float) -> tuple[float, float]:
    """Return `student_quantiles` for percentiles of replicates, whose spread is too small by sqrt((P - 1) / P)."""
    bias = math.sqrt(len(influence_P) / (len(influence_P) - 1))
    down, up = student_quantiles(influence_P, level)
    return down * bias, up * bias


def _scaled(influence_P: Floats) -> Floats:
    """Return values in units of the largest: the powers of a capped ratio would overflow."""
    scaled_P: Floats = influence_P / max(float(np.abs(influence_P).max(initial=0.0)), 1e-300)
    return scaled_P
