"""How many standard errors an estimate lies from what was expected of it.

The guards stand here once. A single prompt has no error: what its resamples differ by is the order in which a processor
sums (OpenBLAS has kernels of its own for Haswell, Zen and SkylakeX), so its score is 0. Several prompts that all say
the same are evidence, however small their error came out: it counts as what rounding leaves of the estimate.
"""

# Far above the rounding of a sum of a million float64 terms, far below any error that sampling leaves.
ROUNDING = 1e-9


def standard_score(value: float, error: float, units: int, expected: float = 0.0) -> float:
    """(value - expected) / error. `units`: independent ones behind the error, prompts or tokens; below two it is 0."""
    least = ROUNDING * max(abs(value), abs(expected))
    error = max(error, least)
    return (value - expected) / error if units > 1 and error > 0 else 0.0
