"""The trend of one run: a spline of few degrees of freedom, with more of them early, where learning is fast."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Shares of the run at which the cubic pieces meet.
KNOTS = (0.02, 0.06, 0.14, 0.28, 0.5, 0.75)


def trend_columns(length: int) -> Floats:
    """(N, Q) orthonormal columns that span the trends of a run of N points; fewer where there are few points."""
    place = np.linspace(0.0, 1.0, length)
    knots = [knot for knot in KNOTS if knot * length >= 4]
    columns = [place**power for power in range(4)] + [np.maximum(place - knot, 0.0) ** 3 for knot in knots]
    orthonormal, _ = np.linalg.qr(np.stack(columns, axis=1))
    return np.asarray(orthonormal, dtype=np.float64)
