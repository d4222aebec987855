"""Frequency penalty: the logit of what was generated before falls by as much each time; here it was once."""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.probe.change import Change, Context


def applied(context: Context, value: float) -> Floats:
    """Return the log probabilities, those of generated tokens lower."""
    return np.where(context.generated_K, context.logprobs_K - value, context.logprobs_K)


CHANGE = Change("frequency_penalty", lambda _: (2.0,), (0.5, 1.0), applied, looks_back="generated")
