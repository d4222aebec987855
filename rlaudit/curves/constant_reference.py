"""When the reference never moves: a sign test, because there is no noise to measure a band from.

A clip fraction that is 0 at every step of the reference gives no noise model, and a candidate that clips is different
all the same. Were candidate and reference seeds exchangeable, each step at which as many runs as there are candidates
differ from the others would pick just those with probability 1 / (runs over candidates). Assumed: such steps are
independent.
"""

import math

import numpy as np
from numpy.typing import NDArray


def separates_from_constant(
    reference_RN: NDArray[np.float64], candidate_CN: NDArray[np.float64], alpha: float
) -> tuple[int, int] | None:
    """(place where enough steps differ, place of the first that does); None where there are not enough.

    C seeds of the candidate, or (N,) of one: a step differs where all of them do.
    """
    level = reference_RN.flat[0]
    candidate_CN = np.atleast_2d(candidate_CN)
    differing = np.flatnonzero((~np.isclose(candidate_CN, level, rtol=1e-9, atol=0.0)).all(axis=0))
    ways = math.comb(len(reference_RN) + len(candidate_CN), len(candidate_CN))
    needed = math.ceil(math.log(1.0 / alpha) / math.log(ways))
    return (int(differing[needed - 1]), int(differing[0])) if differing.size >= needed else None
