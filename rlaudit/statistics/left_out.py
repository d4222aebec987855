"""Statistics of all prompts but some: what no single prompt, sequence or token may turn.

Prompts are dealt into at most MOST_PARTS parts, and a verdict that is not the same without each of them is open. Two
tables that differ in one row have the same rest once the part of that row is left out, and whatever is said of one of
them surely is true of that rest. So they cannot be said opposite things, whatever the row holds.
Source: Broderick, Giordano & Meager, "An Automatic Finite-Sample Robustness Metric" (2020), for the question asked.
"""

import numpy as np

from rlaudit.arrays import Floats, Integers

# The trade: more parts cost as many more evaluations, fewer take more than a sixtieth of the data out at a time.
MOST_PARTS = 64


def part_of(clusters: int) -> Integers:
    """(P,) the part of each prompt; one of its own up to MOST_PARTS prompts."""
    return np.arange(clusters) % MOST_PARTS


def sums_left(sums_PJ: Floats) -> Floats:
    """(K, J) column sums over the prompts that are left when each part is out."""
    parts = np.zeros((min(len(sums_PJ), MOST_PARTS), sums_PJ.shape[1]))
    np.add.at(parts, part_of(len(sums_PJ)), sums_PJ)
    # Not total - part: where one part holds nearly all, the difference would be rounding.
    before = np.concatenate([np.zeros((1, sums_PJ.shape[1])), np.cumsum(parts, axis=0)[:-1]])
    after = np.concatenate([np.cumsum(parts[::-1], axis=0)[::-1][1:], np.zeros((1, sums_PJ.shape[1]))])
    left: Floats = before + after
    return left
