"""How many standard errors an estimate lies from what was expected of it, and how often chance does that.

The guards stand here once. A single prompt has no error: what its resamples differ by is the order in which a processor
sums (OpenBLAS has kernels of its own for Haswell, Zen and SkylakeX), so its score is 0. Several prompts that all say
the same are evidence, however small their error came out: it counts as what rounding leaves of the estimate. The error
of few prompts is itself a guess, so chance is Student's with one degree of freedom less than there are prompts.
Source: Cameron, Gelbach & Miller, "Bootstrap-Based Improvements for Inference with Clustered Errors" (2008), section 2.
"""

import math

from scipy.special import stdtr

# Far above the rounding of a sum of a million float64 terms, far below any error that sampling leaves.
ROUNDING = 1e-9


def standard_score(value: float, error: float, units: int, expected: float = 0.0) -> float:
    """(value - expected) / error. `units`: independent ones behind the error, prompts or tokens; below two it is 0."""
    least = ROUNDING * max(abs(value), abs(expected))
    error = max(error, least)
    return (value - expected) / error if units > 1 and error > 0 else 0.0


def chance_above(score: float, units: int) -> float:
    """One-sided p-value of a score whose error comes from so many independent units; 1 below two of them."""
    return float(stdtr(units - 1, -score)) if units > 1 else 1.0


def chance_apart(score: float, units: int) -> float:
    """Two-sided p-value, 0 to 1."""
    return min(1.0, 2.0 * chance_above(abs(score), units))


def ln_chance_apart(score: float, units: int) -> float:
    """Natural logarithm of the two-sided p-value; no less than that of the smallest float."""
    return math.log(max(chance_apart(score, units), math.ulp(0.0)))
