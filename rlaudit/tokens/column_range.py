"""The values that each column of a token table can have: the one place where that is stated.

Missing values (NaN) are not judged here: `sound.py` and `complete.py` say which columns may have them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.tokens.integrity import ROUNDING_ABOVE_ZERO

# The largest tokenizer in use (XLM-V) has 901,629 entries.
LARGEST_VOCABULARY = 1 << 20
# vLLM writes this for -inf where JSON has no infinity. Logits of trained models lie within some hundred of each other:
# no sampled token is as improbable, and masks (torch.finfo.min, -1e9) are far below.
STAND_IN_FOR_MINUS_INFINITY = -9_999.0
LOWEST_LOGPROB = STAND_IN_FOR_MINUS_INFINITY + 1.0
# logsumexp minus a mean logit, both up to 32, in bfloat16: they are rounded to eighths.
ENTROPY_ROUNDING = 0.125
# Whole numbers up to here are themselves in a float64, which columns with gaps are read as.
EXACT = float(2**53)
# Far above any reward; sums of squares over any table stay finite.
LARGEST_REWARD = 1e12


@dataclass(frozen=True)
class Range:
    """From low to high, both included."""

    low: float
    high: float
    expected: str
    # Whether nothing lies between two whole numbers.
    whole: bool = False
    # Whether minus infinity is in it as well.
    minus_infinity: bool = False

    def broken(self, values: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return which values, of any shape, are impossible; None if none is. NaN counts as possible."""
        if not values.size or values.dtype == np.bool_:
            return None
        # Extremes show of nearly every column that nothing is wrong; fmin and fmax pass over NaN.
        fits = np.fmin.reduce(values, axis=None) >= self.low and np.fmax.reduce(values, axis=None) <= self.high
        broken = (values < self.low) | (values > self.high) if not fits else np.zeros(values.shape, dtype=np.bool_)
        if self.minus_infinity:
            broken &= values != -np.inf
        if self.whole and values.dtype.kind == "f":
            broken |= np.isfinite(values) & (values != np.floor(values))
        return broken if broken.any() else None


_LOGPROB = Range(LOWEST_LOGPROB, ROUNDING_ABOVE_ZERO, f"a logprob in nats, {LOWEST_LOGPROB:,.0f} to 0")
_VERSION = Range(-1, EXACT, "a whole number, -1 for none", whole=True)
_REWARD = Range(-LARGEST_REWARD, LARGEST_REWARD, f"at most {LARGEST_REWARD:g} in size")
_TOKEN = Range(-1, LARGEST_VOCABULARY - 1, f"a token id below {LARGEST_VOCABULARY}, -1 for none", whole=True)
# Numbers below stand for -inf (`sound.py`).
_TOP_LOGPROB = Range(
    _LOGPROB.low, _LOGPROB.high, f"{_LOGPROB.expected}, or -inf of a masked token", minus_infinity=True
)
RANGES: Mapping[str, Range] = {
    "rollout_logprob": _LOGPROB,
    "trainer_logprob": _LOGPROB,
    "old_logprob": _LOGPROB,
    "base_logprob": _LOGPROB,
    "token_id": _TOKEN,
    "loss_mask": Range(0, 1, "0 or 1", whole=True),
    "rollout_version": _VERSION,
    "trainer_version": _VERSION,
    "trainer_entropy": Range(
        -ENTROPY_ROUNDING,
        math.log(LARGEST_VOCABULARY),
        f"nats from 0 to the logarithm of a vocabulary, at most {math.log(LARGEST_VOCABULARY):.1f}",
    ),
    "advantage": _REWARD,
    "reward": _REWARD,
    "cached_tokens": Range(0, EXACT, "a whole number from 0", whole=True),
    "stale_tokens": Range(0, EXACT, "a whole number from 0", whole=True),
    "batch_id": Range(-EXACT, EXACT, f"a text or a whole number up to {EXACT:.0f} in size", whole=True),
    "step": Range(-EXACT, EXACT, f"a text or a whole number up to {EXACT:.0f} in size", whole=True),
    "rollout_top_ids": _TOKEN,
    "trainer_top_ids": _TOKEN,
    "rollout_top_logprobs": _TOP_LOGPROB,
    "trainer_top_logprobs": _TOP_LOGPROB,
}
# A trainer that replays the sampler's filters says -inf of a token outside them.
EXCLUDED = Range(_LOGPROB.low, _LOGPROB.high, f"{_LOGPROB.expected}, or -inf outside the filters", minus_infinity=True)
