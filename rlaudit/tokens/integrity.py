"""What must hold of logprobs before any figure is worth computing.

Covered: NaN, infinite and positive logprobs, sequences without tokens.
Not covered: whether both sides speak of the same tokens (`alignment.py`) and mean the same by their logprobs
(`rlaudit/meaning`).

A fault stops the comparison. Dropping the offending tokens instead would hide the sequences that a broken
engine hits hardest (MaxText PR 5231 found positive logprobs from bf16 logits; vLLM 42019 uninitialised ones).
"""

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.tokens.pairs import LogprobPairs

# float32 log_softmax of a near-certain token lands this far above 0 at most; more is a wrong number.
ROUNDING_ABOVE_ZERO = 1e-6


def integrity_fault(pairs: LogprobPairs) -> str | None:
    """Return the first reason not to go on with `pairs`, in a sentence; None when there is none."""
    if pairs.tokens == 0:
        return "there is no token to compare"
    for side, logprobs_T in (("rollout", pairs.rollout_logprobs_T), ("trainer", pairs.trainer_logprobs_T)):
        fault = _fault_of(f"the {side} logprobs", logprobs_T, pairs)
        if fault is not None:
            return fault
    entropy_T = pairs.entropy_T
    if entropy_T is not None and not np.isfinite(entropy_T).all():
        return _located("the trainer's entropy: nan", ~np.isfinite(entropy_T), pairs)
    empty = np.flatnonzero(pairs.sequence_lengths_S == 0)
    if empty.size:
        return f"{empty.size} of {pairs.sequences} sequences have no token, first sequence {empty[0]}"
    return None


def _fault_of(name: str, logprobs_T: Floats, pairs: LogprobPairs) -> str | None:
    highest = logprobs_T.max()
    # Extremes show of nearly all tables that nothing is wrong: NaN and infinities come through them.
    if logprobs_T.min() > -np.inf and highest <= ROUNDING_ABOVE_ZERO:
        return None
    for kind, faulty_T in (("nan", np.isnan(logprobs_T)), ("negative infinity", np.isneginf(logprobs_T))):
        if faulty_T.any():
            return _located(f"{name}: {kind}", faulty_T, pairs)
    return f"{_located(f'{name}: positive logprob', logprobs_T > ROUNDING_ABOVE_ZERO, pairs)}, largest {highest:.3g}"


def _located(fault: str, faulty_T: NDArray[np.bool_], pairs: LogprobPairs) -> str:
    positions = np.flatnonzero(faulty_T)
    sequence = pairs.sequence_T[positions[0]]
    within = int(positions[0]) - int(np.searchsorted(pairs.sequence_T, sequence))
    return (
        f"{fault} at {positions.size} of {pairs.tokens} tokens in {np.unique(pairs.sequence_T[positions]).size} of "
        f"{pairs.sequences} sequences, first in sequence {sequence} at position {within}"
    )
