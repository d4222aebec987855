"""Min-p: what is less likely than a share of the likeliest token is cut, the others are divided by what is kept."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.change import Change, Context

# Relative distance that noise may move across the edge.
TOO_NEAR = 0.05


def applied(context: Context, value: float) -> Floats | None:
    """Return the log probabilities of what is kept; None if the edge is below the listed tokens or close to one."""
    above_K = context.logprobs_K - context.logprobs_K[0] - np.log(value)
    if above_K[-1] > 0 or np.min(np.abs(above_K)) < TOO_NEAR:
        return None
    kept_K = np.where(above_K > 0, context.logprobs_K, -np.inf)
    weights_K: Floats = kept_K - np.logaddexp.reduce(kept_K)
    return weights_K


CHANGE = Change("min_p", lambda _: (0.3, 0.1), (0.05, 0.1, 0.02, 0.01), applied, cuts=True)
