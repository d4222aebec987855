"""Sums of per-token columns over clusters: all that a bootstrap over prompts needs of the tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers


def cluster_sums(columns: Sequence[NDArray[Any]], cluster: Integers, clusters: int) -> Floats:
    """(P, J) sums of J columns (N,) by the cluster of each row."""
    sums = [np.bincount(cluster, column, minlength=clusters) for column in columns]
    return np.stack(sums, axis=1).astype(np.float64)
