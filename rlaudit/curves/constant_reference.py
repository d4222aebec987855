"""When the reference never moves: a sign test, because there is no noise to measure a band from.

A clip fraction that is 0 at every step of the reference gives no noise model, and a candidate that clips is different
all the same. Were candidate and reference seeds exchangeable, each step at which one run alone differs from the others
would pick the candidate with probability 1 / runs. Assumed: such steps are independent.
"""

import math

import numpy as np
from numpy.typing import NDArray


def separates_from_constant(
    reference_RN: NDArray[np.float64], candidate_N: NDArray[np.float64], alpha: float
) -> tuple[int, int] | None:
    """(place where enough steps differ, place of the first that does); None where there are not enough."""
    level = reference_RN.flat[0]
    differing = np.flatnonzero(~np.isclose(candidate_N, level, rtol=1e-9, atol=0.0))
    needed = math.ceil(math.log(1.0 / alpha) / math.log(len(reference_RN) + 1))
    return (int(differing[needed - 1]), int(differing[0])) if differing.size >= needed else None
