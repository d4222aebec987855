"""Repetition penalty: the logit of what stands before, in the prompt as well, is divided by it if it is above 0.

Logits are known up to a constant, so by how much the log probability falls is not.
"""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.change import Change, Context


def applied(context: Context, value: float) -> Floats:
    """Return NaN for what stands before, the log probabilities of the others."""
    del value
    return np.where(context.before_K, np.nan, context.logprobs_K)


CHANGE = Change("repetition_penalty", lambda _: (1.3,), (1.1,), applied, looks_back="prompt", sized=False)
