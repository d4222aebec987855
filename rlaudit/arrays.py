"""The two kinds of array that figures are made of, and what their sums are off by."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Far above the rounding of a sum of a million float64 terms, far below any error that sampling leaves.
ROUNDING = 1e-9
