"""Temperature: log probabilities are divided by T, up to a constant."""

from rlaudit.arrays import Floats
from rlaudit.probe.change import Change, Context


def applied(context: Context, value: float) -> Floats:
    """Return log p / T."""
    return context.logprobs_K / value


CHANGE = Change("temperature", lambda _: (0.5, 2.0), (0.6, 0.7, 0.8, 0.9, 0.5, 0.2, 1.2), applied)
