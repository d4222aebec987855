"""Top-p: the fewest tokens whose mass reaches p are kept, and divided by their mass."""

from itertools import pairwise

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.change import Change, Context

# Mass that noise may move across the edge, and ranks that it may exchange there, nats.
TOO_NEAR = 0.01
TOO_LIKE = 0.05


def applied(context: Context, value: float) -> Floats | None:
    """Return the log probabilities of what is kept; None if the listed tokens do not reach p, or noise decides."""
    mass_K = np.cumsum(np.exp(context.logprobs_K))
    if mass_K[-1] < value or np.min(np.abs(mass_K - value)) < TOO_NEAR:
        return None
    last = int(np.argmax(mass_K >= value))
    following = context.logprobs_K[last + 1 : last + 2]
    if (context.logprobs_K[last] - following < TOO_LIKE).any():
        return None
    # A token is kept if the mass before it is below p.
    kept_K = np.where(mass_K - np.exp(context.logprobs_K) < value, context.logprobs_K, -np.inf)
    weights_K: Floats = kept_K - np.logaddexp.reduce(kept_K)
    return weights_K


def values(context: Context) -> tuple[float, ...]:
    """Return what keeps two, three or four tokens: half of a flat distribution may lie beyond what is listed."""
    mass_K = np.cumsum(np.exp(context.logprobs_K))
    return tuple(round(float(before + after) / 2, 3) for before, after in pairwise(mass_K[:4]))


CHANGE = Change("top_p", values, (0.95, 0.9, 0.8, 0.7), applied, cuts=True)
