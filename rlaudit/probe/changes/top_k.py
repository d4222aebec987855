"""Top-k: what is not among the k likeliest is cut, the others are divided by the mass that is kept."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.change import Change, Context

# Ranks that noise may exchange, nats.
TOO_NEAR = 0.05


def applied(context: Context, value: int) -> Floats | None:
    """Return the log probabilities of the k likeliest; None if fewer are listed, or the last is as likely as
    the next."""
    logprobs_K = context.logprobs_K
    if len(logprobs_K) < value or (len(logprobs_K) > value and logprobs_K[value - 1] - logprobs_K[value] < TOO_NEAR):
        return None
    kept_K = np.where(np.arange(len(logprobs_K)) < value, logprobs_K, -np.inf)
    weights_K: Floats = kept_K - np.logaddexp.reduce(kept_K)
    return weights_K


CHANGE = Change("top_k", lambda _: (3,), (20, 50, 40, 10, 5, 64, 1), applied, cuts=True)
