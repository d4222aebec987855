"""A bias of one token: its logit rises by as much."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.change import Change, Context


def applied(context: Context, value: float) -> Floats:
    """Return the log probabilities, that of the biased token higher."""
    return np.where(context.biased_K, context.logprobs_K + value, context.logprobs_K)


CHANGE = Change("logit_bias", lambda _: (2.0,), (), applied, by_id=True)
