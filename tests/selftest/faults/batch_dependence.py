"""Kernels that depend on the batch: each batch has noise of its own size."""

import numpy as np
from worlds.fault import noise_fault
from worlds.ground import Ground

from rlaudit.arrays import Floats


def uneven_batches(ground: Ground, rng: np.random.Generator) -> Floats:
    """Kernels that depend on the batch: each batch has noise of its own size."""
    of_batch_B = np.exp(rng.normal(0.0, 0.8, int(ground.batch_S.max()) + 1))
    of_token_T: Floats = of_batch_B[ground.batch_S][ground.sequence_T]
    return of_token_T


FAULT = noise_fault((1.5, 5.0, 15.0), "in a typical batch", uneven_batches)
