"""Sequences whose logprobs are broken, named and left out: NaN, infinite, positive, or scored in part only.

A logprob that is missing and one that is NaN cannot be told apart in every format (pandas writes NaN as missing), so a
sequence that the trainer did not score at all is kept without a score, and one that it scored in part is broken.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlaudit.mismatch.integrity import ROUNDING_ABOVE_ZERO
from rlaudit.mismatch.pairs import Floats
from rlaudit.token_table.fault import Fault, Faults
from rlaudit.token_table.token_batch import TokenBatch

LINE = "line"


def sound(batch: TokenBatch, path: Path, faults: Faults, trainer_excludes: bool = False) -> TokenBatch:
    """The batch without its broken sequences.

    trainer_excludes: the trainer replays the sampler's filters, so that a trainer logprob of -inf (a token outside
    them) is an answer and not a fault.
    """
    checks = [
        *_checks("rollout", batch.rollout_logprobs_T, batch, nan=True, infinite=False),
        *_trainer_checks(batch, trainer_excludes),
    ]
    broken_S = np.zeros(batch.sequences, dtype=np.bool_)
    for message, broken_T in checks:
        for sequence in np.unique(batch.sequence_T[broken_T]):
            if broken_S[sequence]:
                continue
            broken_S[sequence] = True
            own_T = broken_T[batch.offsets[sequence] : batch.offsets[sequence + 1]]
            first = int(batch.position_T[batch.offsets[sequence] + int(np.argmax(own_T))])
            line = int(batch.sequence_columns[LINE][sequence]) if LINE in batch.sequence_columns else None
            said = f"{message} at {int(own_T.sum())} tokens, first at position {first}; the sequence is left out"
            faults.add(Fault(path, said, line, batch.name_of(int(sequence))), sequences=1)
    return batch.take(np.flatnonzero(~broken_S)) if broken_S.any() else batch


Check = tuple[str, NDArray[np.bool_]]


def _trainer_checks(batch: TokenBatch, excludes: bool) -> list[Check]:
    trainer_T = batch.trainer_logprobs_T
    missing_T = np.isnan(trainer_T)
    if missing_T.all():
        return []
    found = _checks("trainer", trainer_T, batch, nan=False, infinite=excludes)
    if missing_T.any():
        missing_T &= batch.counts_T
        lacking_S = np.add.reduceat(missing_T, batch.offsets[:-1], dtype=np.int64)
        counted_S = np.add.reduceat(batch.counts_T, batch.offsets[:-1], dtype=np.int64)
        partly_S = (lacking_S > 0) & (lacking_S < counted_S)
        if partly_S.any():
            broken_T = missing_T & np.repeat(partly_S, batch.lengths_S)
            found.append(("the trainer logprobs: NaN or no logprob", broken_T))
    return found


def _checks(side: str, logprobs_T: Floats, batch: TokenBatch, *, nan: bool, infinite: bool) -> list[Check]:
    """nan: whether NaN is a fault. infinite: whether -inf is an answer."""
    if "loss_mask" in batch.token_columns:
        # What the loss does not count may hold anything.
        logprobs_T = np.where(batch.counts_T, logprobs_T, -1.0)
    if not logprobs_T.size or (logprobs_T.min() > -np.inf and logprobs_T.max() <= ROUNDING_ABOVE_ZERO):
        return []
    found = [(f"the {side} logprobs: positive", logprobs_T > ROUNDING_ABOVE_ZERO)]
    if not infinite:
        found.append((f"the {side} logprobs: -inf", np.isneginf(logprobs_T)))
    if nan:
        found.append((f"the {side} logprobs: NaN or no logprob", np.isnan(logprobs_T)))
    return [(message, broken_T) for message, broken_T in found if broken_T.any()]
