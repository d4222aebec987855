"""Bins of a log ratio: ten for each power of ten of |d|, on both sides of zero, and one for what is zero.

Fixed bins add up over batches, and one scale shows float32 noise (1e-7) beside a wrong temperature (1).
"""

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers

PER_DECADE = 10
SMALLEST, LARGEST = -8, 2
SIZES = (LARGEST - SMALLEST) * PER_DECADE
# (SIZES + 1,) limits of |d|; what is below the first counts as zero, what is above the last as the last.
EDGES: Floats = 10.0 ** (SMALLEST + np.arange(SIZES + 1) / PER_DECADE)


def size_bins(log_ratio_T: Floats) -> Integers:
    """(T,) 0 where |d| is below 1e-8, else 1 + its bin among EDGES."""
    with np.errstate(divide="ignore"):
        decade_T = np.log10(np.abs(log_ratio_T))
    sizes_T: Integers = np.clip(np.floor((decade_T - SMALLEST) * PER_DECADE) + 1, 0, SIZES).astype(np.int64)
    return sizes_T


def signed_counts(log_ratio_T: Floats, size_T: Integers) -> Integers:
    """(2 * SIZES + 1,) tokens in each bin, from the most negative to the most positive. size_T: as of `size_bins`."""
    signed_T = np.where(log_ratio_T < 0, -size_T, size_T)
    return np.bincount(signed_T + SIZES, minlength=2 * SIZES + 1)


def signed_limits(place: int) -> tuple[float, float]:
    """Low and high of a bin of `signed_counts`."""
    number = place - SIZES
    if number == 0:
        return -float(EDGES[0]), float(EDGES[0])
    low, high = float(EDGES[abs(number) - 1]), float(EDGES[abs(number)])
    return (low, high) if number > 0 else (-high, -low)


def quantile(counts: NDArray[np.integer], share: float) -> float:
    """|d| below which `share` of the tokens lie; counts: (SIZES + 1,) as from `size_bins`. Log-linear inside a bin."""
    reached = np.cumsum(counts)
    wanted = share * reached[-1]
    place = int(np.searchsorted(reached, wanted))
    if place == 0:
        return 0.0
    inside = (wanted - reached[place - 1]) / counts[place]
    return float(10.0 ** (SMALLEST + (place - 1 + inside) / PER_DECADE))
