"""How alike two columns vary, where both vary by more than what rounding leaves of a constant."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.statistics.resample import ROUNDING

FEWEST = 3  # two points always lie on a line


def correlation(first: Floats, second: Floats) -> float | None:
    """Pearson's correlation; None of fewer than three finite pairs, and where one side is constant."""
    if len(first) < FEWEST or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    spreads = []
    for values in (first, second):
        spread = float(values.std())
        if spread <= ROUNDING * float(np.abs(values).max()):
            return None
        spreads.append(spread)
    return float(np.mean((first - first.mean()) * (second - second.mean()))) / (spreads[0] * spreads[1])
