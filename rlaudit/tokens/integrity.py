"""What must hold of logprobs before any figure is worth computing.

Covered: NaN, infinite and positive logprobs, sequences without tokens.
Not covered: whether both sides speak of the same tokens (`alignment.py`) and mean the same by their logprobs
(`rlaudit/meaning`).

A fault stops the comparison. Dropping the offending tokens instead would hide the sequences that a broken
engine hits hardest (MaxText PR 5231 found positive logprobs from bf16 logits; vLLM 42019 uninitialised ones).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rlaudit.tokens.pairs import LogprobPairs

# float32 log_softmax of a near-certain token lands this far above 0 at most; more is a wrong number.
ROUNDING_ABOVE_ZERO = 1e-6


class FaultKind(StrEnum):
    """Why no figure can be computed."""

    NAN = "nan"
    NEGATIVE_INFINITY = "negative infinity"
    POSITIVE_LOGPROB = "positive logprob"
    EMPTY_SEQUENCE = "empty sequence"
    NO_TOKENS = "no tokens"


@dataclass(frozen=True)
class IntegrityFault:
    """One kind of fault, the sequences that show it, and a sentence with the first of them."""

    kind: FaultKind
    sequences: tuple[int, ...]
    message: str


def integrity_faults(pairs: LogprobPairs) -> list[IntegrityFault]:
    """Return every reason not to go on with `pairs`; an empty list when there is none."""
    if pairs.tokens == 0:
        return [IntegrityFault(FaultKind.NO_TOKENS, (), "there is no token to compare")]
    if _sound(pairs):
        return []
    faults: list[IntegrityFault] = []
    for side, logprobs_T in (("rollout", pairs.rollout_logprobs_T), ("trainer", pairs.trainer_logprobs_T)):
        faults += [
            _value_fault(FaultKind.NAN, side, pairs, np.isnan(logprobs_T)),
            _value_fault(FaultKind.NEGATIVE_INFINITY, side, pairs, np.isneginf(logprobs_T)),
            _value_fault(FaultKind.POSITIVE_LOGPROB, side, pairs, logprobs_T > ROUNDING_ABOVE_ZERO),
        ]
    if pairs.entropy_T is not None:
        faults.append(_value_fault(FaultKind.NAN, "entropy", pairs, ~np.isfinite(pairs.entropy_T)))
    empty = np.flatnonzero(pairs.sequence_lengths_S == 0)
    message = f"{empty.size} of {pairs.sequences} sequences have no token" + (
        f", first sequence {empty[0]}" if empty.size else ""
    )
    faults.append(IntegrityFault(FaultKind.EMPTY_SEQUENCE, tuple(empty.tolist()), message))
    return [fault for fault in faults if fault.sequences]


def _sound(pairs: LogprobPairs) -> bool:
    """Return whether there is nothing to look for. Extremes tell, because NaN and infinities come through them."""
    for logprobs_T in (pairs.rollout_logprobs_T, pairs.trainer_logprobs_T):
        if not (logprobs_T.min() > -np.inf and logprobs_T.max() <= ROUNDING_ABOVE_ZERO):
            return False
    entropy_T = pairs.entropy_T
    if entropy_T is not None and not (entropy_T.min() > -np.inf and entropy_T.max() < np.inf):
        return False
    return bool(pairs.sequence_lengths_S.all())


def _value_fault(kind: FaultKind, side: str, pairs: LogprobPairs, faulty_T: NDArray[np.bool_]) -> IntegrityFault:
    positions = np.flatnonzero(faulty_T)
    sequences = np.unique(pairs.sequence_T[positions])
    if not positions.size:
        return IntegrityFault(kind, (), "")
    name = "the trainer's entropy" if side == "entropy" else f"the {side} logprobs"
    first = int(positions[0])
    within = first - int(np.searchsorted(pairs.sequence_T, pairs.sequence_T[first]))
    message = (
        f"{name}: {kind.value} at {positions.size} of {pairs.tokens} tokens in {sequences.size} of "
        f"{pairs.sequences} sequences, first in sequence {pairs.sequence_T[first]} at position {within}"
    )
    if kind is FaultKind.POSITIVE_LOGPROB:
        values_T = pairs.rollout_logprobs_T if side == "rollout" else pairs.trainer_logprobs_T
        message += f", largest {np.max(values_T[positions]):.3g}"
    return IntegrityFault(kind, tuple(sequences.tolist()), message)
