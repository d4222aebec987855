"""Leaves out, by name, sequences with impossible values: those outside `column_range.py`, and missing logprobs.

Not every format distinguishes a missing logprob from NaN (pandas writes NaN as missing). So a sequence that the trainer
did not score at all is kept without a score, and one that it scored in part is broken. Other columns may have gaps;
`complete.py` judges those where the columns are used.

Top lists get -inf for the numbers that stand for it (vLLM writes -9999 where JSON has no infinity, masks -1e9 and
below), and their best token first, as every test of them expects: vLLM puts the sampled token before the others, and
a log may keep them in the order of their ids.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.tokens.column_range import EXCLUDED, LOWEST_LOGPROB, RANGES
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.integrity import ROUNDING_ABOVE_ZERO
from rlaudit.tokens.token_batch import MOST_LISTED, NO_TOKEN, TOPS, Column, TokenBatch

LEFT_OUT = "; the sequence is left out"


def sound(batch: TokenBatch, path: Path, faults: Faults, trainer_excludes: bool = False) -> TokenBatch:
    """Return the batch without its broken sequences, its top lists in order.

    trainer_excludes: the trainer replays the sampler's filters, so that a logprob of -inf by the trainer or by the old
    policy (a token outside them) is an answer and not a fault.
    """
    batch = best_first(with_infinities(batch))
    broken_S = np.zeros(batch.sequences, dtype=np.bool_)
    for broken in _broken(batch, trainer_excludes):
        sequences = np.unique(batch.sequence_T[broken.broken_T])
        new = sequences[~broken_S[sequences]]
        if not new.size:
            continue
        broken_S[new] = True
        sequence = int(new[0])
        begin, end = batch.offsets[sequence], batch.offsets[sequence + 1]
        place = int(begin) + int(np.argmax(broken.broken_T[begin:end]))
        faults.add(
            Fault(
                path,
                broken.kind,
                f"{broken.column} {broken.problem(batch, place)} at position {batch.position_T[place]}{LEFT_OUT}",
                batch.line_of(sequence),
                batch.name_of(sequence),
                broken.column,
            ),
            sequences=new.size,
            tokens=int(batch.lengths_S[new].sum()),
            count=new.size,
        )
    return batch.take(np.flatnonzero(~broken_S)) if broken_S.any() else batch


@dataclass(frozen=True, eq=False)
class _Broken:
    """Tokens with an impossible value in one column."""

    kind: FaultKind
    column: str
    broken_T: NDArray[np.bool_]
    values: Column
    expected: str
    # Printed instead of the value, if that explains more.
    what: str = ""

    def problem(self, batch: TokenBatch, place: int) -> str:
        """Return what is wrong at one token."""
        if self.what:
            return f"{self.what}, expected {self.expected}"
        value = self.values[place]
        if np.ndim(value):
            value = next(entry for entry in value.tolist() if RANGES[self.column].broken(np.array([entry])) is not None)
        return f"is {value:.9g}, expected {self.expected}"


def _broken(batch: TokenBatch, excludes: bool) -> Iterator[_Broken]:
    # First: an impossible mask does not say which tokens may have any value.
    if "loss_mask" in batch.token_columns:
        yield from _outside("loss_mask", batch.token_columns["loss_mask"], batch, counted=False)
    yield from _missing("rollout_logprob", np.isnan(batch.rollout_logprobs_T), batch)
    yield from _outside("rollout_logprob", batch.rollout_logprobs_T, batch)
    yield from _partly_scored(batch)
    yield from _outside("trainer_logprob", batch.trainer_logprobs_T, batch, excludes=excludes)
    if not batch.has_hashed_ids:
        yield from _outside("token_id", batch.token_id_T, batch, counted=False)
    for name, values_T in batch.token_columns.items():
        if name in RANGES and name != "loss_mask":
            # The old policy is the trainer at the step's beginning, and replays the same filters.
            yield from _outside(name, values_T, batch, excludes=excludes and name == "old_logprob")
    for name, values_S in batch.sequence_columns.items():
        if name in RANGES and RANGES[name].broken(values_S) is not None:
            yield from _outside(name, np.repeat(values_S, batch.lengths_S), batch, counted=False)
    for side in ("rollout", "trainer"):
        yield from _top_lists(side, batch)


def _outside(
    name: str, values: Column, batch: TokenBatch, *, counted: bool = True, excludes: bool = False
) -> Iterator[_Broken]:
    """Yield values outside their column's range. counted: only tokens that the loss counts; others may have any."""
    allowed = EXCLUDED if excludes else RANGES[name]
    broken = allowed.broken(values)
    if broken is None:
        return
    broken_T = np.any(broken.reshape(len(broken), -1), axis=1)
    if counted:
        broken_T &= batch.counts_T
    if broken_T.any():
        yield _Broken(FaultKind.IMPOSSIBLE, name, broken_T, values, allowed.expected)


def _missing(name: str, missing_T: NDArray[np.bool_], batch: TokenBatch) -> Iterator[_Broken]:
    broken_T = missing_T & batch.counts_T
    if broken_T.any():
        yield _Broken(FaultKind.MISSING, name, broken_T, missing_T, "a logprob of every token", "is NaN or missing")


def _partly_scored(batch: TokenBatch) -> Iterator[_Broken]:
    missing_T = np.isnan(batch.trainer_logprobs_T)
    if not missing_T.any() or missing_T.all():
        return
    missing_T &= batch.counts_T
    lacking_S = np.add.reduceat(missing_T, batch.offsets[:-1], dtype=np.int64)
    counted_S = np.add.reduceat(batch.counts_T, batch.offsets[:-1], dtype=np.int64)
    partly_S = (lacking_S > 0) & (lacking_S < counted_S)
    yield from _missing("trainer_logprob", missing_T & np.repeat(partly_S, batch.lengths_S), batch)


def _top_lists(side: str, batch: TokenBatch) -> Iterator[_Broken]:
    ids, logprobs = f"{side}_top_ids", f"{side}_top_logprobs"
    ids_TK, logprobs_TK = (getattr(batch, TOPS[name]) for name in (ids, logprobs))
    if ids_TK is not None:
        yield from _outside(ids, ids_TK, batch)
    if logprobs_TK is None or not logprobs_TK.shape[1]:
        return
    counted_T = batch.counts_T
    missing_T = np.isnan(logprobs_TK).any(axis=1) & counted_T
    if missing_T.any():
        expected = f"a logprob for each of {ids}"
        yield _Broken(FaultKind.MISSING, logprobs, missing_T, logprobs_TK, expected, "has a NaN or another length")
    yield from _outside(logprobs, logprobs_TK, batch)
    rising_T = rising(logprobs_TK) & counted_T
    if rising_T.any():
        what = f"rises within its first {MOST_LISTED} entries, which are all that is read"
        yield _Broken(FaultKind.IMPOSSIBLE, logprobs, rising_T, logprobs_TK, "the best token first", what)
    if ids_TK is not None and ids_TK.shape == logprobs_TK.shape:
        lone_T = ((ids_TK == NO_TOKEN) & np.isfinite(logprobs_TK)).any(axis=1) & counted_T
        if lone_T.any():
            expected = f"as many as in {ids}"
            yield _Broken(FaultKind.IMPOSSIBLE, logprobs, lone_T, logprobs_TK, expected, "has a logprob of no token")


def with_infinities(batch: TokenBatch) -> TokenBatch:
    """Return the batch with -inf for masked tokens of its top lists that have a number far below any logprob.

    Every test of the lists leaves out -inf, and would take such a number for the logprob of a token that was possible.
    """
    for side in ("rollout", "trainer"):
        field = TOPS[f"{side}_top_logprobs"]
        logprobs_TK = getattr(batch, field)
        if logprobs_TK is None:
            continue
        masked_TK = (logprobs_TK < LOWEST_LOGPROB) & np.isfinite(logprobs_TK)
        if masked_TK.any():
            changed: dict[str, Any] = {field: np.where(masked_TK, -np.inf, logprobs_TK)}
            batch = replace(batch, **changed)
    return batch


def best_first(batch: TokenBatch) -> TokenBatch:
    """Return the batch with its lists (T, K) in order, padding at the end.

    Lists of unequal length stay unchanged, and so do lists that were read only in part.
    """
    for side in ("rollout", "trainer"):
        ids, logprobs = TOPS[f"{side}_top_ids"], TOPS[f"{side}_top_logprobs"]
        ids_TK, logprobs_TK = getattr(batch, ids), getattr(batch, logprobs)
        unequal = ids_TK is not None and logprobs_TK is not None and ids_TK.shape != logprobs_TK.shape
        if logprobs_TK is None or unequal or logprobs_TK.shape[1] >= MOST_LISTED or not rising(logprobs_TK).any():
            continue
        order_TK = np.argsort(-logprobs_TK, axis=1, kind="stable")
        changed: dict[str, Any] = {logprobs: np.take_along_axis(logprobs_TK, order_TK, axis=1)}
        if ids_TK is not None:
            changed[ids] = np.take_along_axis(ids_TK, order_TK, axis=1)
        batch = replace(batch, **changed)
    return batch


def rising(logprobs_TK: Floats) -> NDArray[np.bool_]:
    """Return (T,) whether a list (T, K) has a better token behind a worse one."""
    # Both ends of a step of -inf to -inf are padding.
    with np.errstate(invalid="ignore"):
        return np.asarray((np.diff(logprobs_TK, axis=1) > ROUNDING_ABOVE_ZERO).any(axis=1))
