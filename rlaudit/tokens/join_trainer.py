"""Trainer logprobs from a table of their own, joined to the rollouts by a key that no two sequences share.

The key: prompt and sample, how many tokens there are, which ones if both tables have their ids, and every column of
ONCE_PER_SEQUENCE that both have. A key that comes twice in one table proves nothing, and the join is refused.
Sequences of different keys are never paired, so other tokens never are; what finds no partner is counted, on either
side.

Both tables are streamed, a batch of each in turn; sequences wait in memory until their counterpart comes, so tables in
the same order need no more than a few batches.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.errors import NotFinished
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

# These distinguish a prompt's sample of one step from that of another.
ONCE_PER_SEQUENCE = ("step", "rollout_version", "trainer_version", "batch_id")
# Of both tables together: some 600 MB with the columns that most have. Tables in the same order hold a million tokens.
MOST_WAITING_TOKENS = 1 << 24


def joined(
    rollouts: Iterator[TokenBatch], trainer: Iterator[TokenBatch], paths: tuple[Path, Path], faults: Faults
) -> Iterator[TokenBatch]:
    """Yield the rollouts with the trainer's logprobs, in batches as they come. paths: of both tables, for messages.

    Raises NotFinished if a key comes twice in a table, or if too many sequences wait for a counterpart.
    """
    first, trainers_first = next(rollouts, None), next(trainer, None)
    key = _shared_key(first, trainers_first)
    # Of the whole table: a sequence without a trainer logprob must not get the rollout's own for one.
    alone = trainers_first is None or bool(np.isnan(trainers_first.trainer_logprobs_T).all())
    left, right = _Side(paths[0]), _Side(paths[1])
    trainer_batches = (_with_trainer_logprobs(batch, alone, paths[1]) for batch in _again(trainers_first, trainer))
    streams = ((left, _again(first, rollouts)), (right, trainer_batches))
    while not (left.ended and right.ended):
        for side, stream in streams:
            batch = next(stream, None)
            if batch is None:
                side.ended = True
                continue
            fresh = side.add(batch, key)
            if left.repeats or right.repeats:
                # A join that is refused is read on only to say how often keys come again.
                left.forget()
                right.forget()
                continue
            yield from _paired(left, right, fresh)
            _check_waiting(left, right, key)
    for side, other in ((left, right), (right, left)):
        _refuse_repeats(side, other, key)
    _say_left_over(left, right, key, faults)


@dataclass(frozen=True)
class _Key:
    """What two sequences must share besides prompt, sample and length."""

    # Of ONCE_PER_SEQUENCE.
    columns: tuple[str, ...]
    token_ids: bool

    def of(self, batch: TokenBatch) -> list[int]:
        """Return a 64-bit hash for each sequence: in a table of a million, two collide with odds of one in 3e7."""
        ends = batch.offsets.tolist()
        ids = np.ascontiguousarray(batch.token_id_T) if self.token_ids else None
        columns = [batch.prompt_names_S, batch.sample_names_S, *(_at_first(batch, name) for name in self.columns)]
        rows = zip(*(column.tolist() for column in columns), ends[:-1], ends[1:], strict=True)
        return [
            hash((*map(str, names), end - begin, b"" if ids is None else ids[begin:end].tobytes()))
            for *names, begin, end in rows
        ]

    def __str__(self) -> str:
        return ", ".join(("prompt_id", "sample_id", *self.columns, *(("token_id",) if self.token_ids else ())))

    @property
    def lacks(self) -> str:
        """Columns that would distinguish more sequences."""
        used = (*self.columns, *(("token_id",) if self.token_ids else ()))
        return " or ".join(name for name in ("step", "token_id", *ONCE_PER_SEQUENCE[1:]) if name not in used)


@dataclass(eq=False)
class _Held:
    """A batch with sequences that wait for a counterpart."""

    batch: TokenBatch
    keys: list[int]
    # (S,) whether each sequence waits.
    waits: NDArray[np.bool_]

    def compact(self) -> "_Held | None":
        """Return only what waits, if that is at most half; None if nothing does."""
        left = np.flatnonzero(self.waits)
        if not left.size:
            return None
        if 2 * left.size > len(self.keys):
            return self
        keys = [self.keys[place] for place in left.tolist()]
        return _Held(self.batch.take(left), keys, np.ones(left.size, dtype=np.bool_))


@dataclass
class _Side:
    """One table: the keys it has had, and the sequences that wait for a counterpart."""

    path: Path
    held: dict[int, _Held] = field(default_factory=dict)
    # Key -> the number of its batch among `held`, and its place in there.
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    sequences: int = 0
    repeats: int = 0
    first_repeated: str = ""
    ended: bool = False

    def add(self, batch: TokenBatch, key: _Key) -> list[int]:
        """Let the sequences of a batch wait, count those whose key has come before, and return the keys."""
        keys = key.of(batch)
        self.sequences += batch.sequences
        for place, sequence_key in enumerate(keys):
            if sequence_key in self.seen:
                self.repeats += 1
                self.first_repeated = self.first_repeated or _location(batch, place)
            self.seen.add(sequence_key)
        number = max(self.held, default=-1) + 1
        self._hold(number, _Held(batch, keys, np.ones(len(keys), dtype=np.bool_)))
        return keys

    def forget(self) -> None:
        """Let nothing wait any more."""
        self.held, self.waiting = {}, {}

    def take(self, keys: Sequence[int]) -> TokenBatch:
        """Return these sequences of one batch, which wait no more."""
        number = self.waiting[keys[0]][0]
        places = [self.waiting.pop(key)[1] for key in keys]
        held = self.held[number]
        held.waits[places] = False
        taken = held.batch.take(places)
        left = held.compact()
        if left is None:
            del self.held[number]
        elif left is not held:
            self._hold(number, left)
        return taken

    @property
    def tokens(self) -> int:
        """Tokens held."""
        return sum(held.batch.tokens for held in self.held.values())

    def left_over(self) -> Iterator[tuple[TokenBatch, int]]:
        """Yield the sequences that wait, in their order."""
        for held in self.held.values():
            for place in np.flatnonzero(held.waits).tolist():
                yield held.batch, place

    def _hold(self, number: int, held: _Held) -> None:
        self.held[number] = held
        self.waiting.update((key, (number, place)) for place, key in enumerate(held.keys))


def _again(first: TokenBatch | None, batches: Iterable[TokenBatch]) -> Iterator[TokenBatch]:
    return chain([] if first is None else [first], batches)


def _shared_key(mine: TokenBatch | None, other: TokenBatch | None) -> _Key:
    """Return the columns that both tables have, as far as their first batches show."""
    both = [batch for batch in (mine, other) if batch is not None]
    columns = tuple(name for name in ONCE_PER_SEQUENCE if all(_has_column(batch, name) for batch in both))
    return _Key(columns, all(np.all(batch.token_id_T != NO_TOKEN) for batch in both))


def _has_column(batch: TokenBatch, name: str) -> bool:
    return not np.isnan(_at_first(batch, name)).all()


def _at_first(batch: TokenBatch, name: str) -> Floats:
    """Return (S,) a column's value at the first token of each sequence; NaN if it has none."""
    if name in batch.sequence_columns:
        return np.asarray(batch.sequence_columns[name], dtype=np.float64)
    if name in batch.token_columns:
        return np.asarray(batch.token_columns[name], dtype=np.float64)[batch.offsets[:-1]]
    return np.full(batch.sequences, np.nan)


def _with_trainer_logprobs(batch: TokenBatch, alone: bool, path: Path) -> TokenBatch:
    """Return the batch with its logprobs as the trainer's.

    alone: the table has one kind of logprobs, which are the trainer's by any name.
    """
    if not alone:
        return batch
    if not np.isnan(batch.trainer_logprobs_T).all():
        raise NotFinished(
            f"{path}: some sequences have a trainer_logprob, and the first ones have only a rollout_logprob",
            "name the trainer's logprobs trainer_logprob in every row",
        )
    return replace(batch, trainer_logprobs_T=batch.rollout_logprobs_T)


def _paired(left: _Side, right: _Side, fresh: Sequence[int]) -> Iterator[TokenBatch]:
    """Yield the sequences that came last, with their counterparts: a batch for each two that share sequences."""
    groups: dict[tuple[int, int], list[int]] = {}
    for key in fresh:
        if key in left.waiting and key in right.waiting:
            groups.setdefault((left.waiting[key][0], right.waiting[key][0]), []).append(key)
    for keys in groups.values():
        in_order = sorted(keys, key=lambda key: left.waiting[key][1])
        yield _pair(left.take(in_order), right.take(in_order))


def _pair(rollout: TokenBatch, trainer: TokenBatch) -> TokenBatch:
    """Pair sequences of the same keys in the same order."""
    extra = {name: values for name, values in trainer.token_columns.items() if name not in rollout.token_columns}
    return replace(
        rollout,
        trainer_logprobs_T=trainer.trainer_logprobs_T,
        token_columns={**rollout.token_columns, **extra},
        trainer_top_ids_TK=trainer.trainer_top_ids_TK,
        trainer_top_logprobs_TK=trainer.trainer_top_logprobs_TK,
    )


def _refuse_repeats(side: _Side, other: _Side, key: _Key) -> None:
    if side.repeats:
        raise NotFinished(
            f"{side.path}: {side.repeats} of {side.sequences} sequences have the {key} and length of an earlier one, "
            f"first {side.first_repeated}; which sequence of {other.path} belongs to which is not known",
            f"give both tables a column that tells them apart: {key.lacks}" if key.lacks else "number the samples anew",
        )


def _check_waiting(left: _Side, right: _Side, key: _Key) -> None:
    tokens = left.tokens + right.tokens
    if tokens <= MOST_WAITING_TOKENS:
        return
    batch, place = next(chain(left.left_over(), right.left_over()))
    raise NotFinished(
        f"{tokens} tokens of {left.path} and {right.path} wait for a counterpart, first {_location(batch, place)}: "
        "the tables hold other sequences, or the same in another order",
        f"sort both tables by {key}, so that counterparts lie near each other",
    )


def _say_left_over(left: _Side, right: _Side, key: _Key, faults: Faults) -> None:
    """Name every sequence without a partner: as one with other tokens if the other table has one of its name."""
    # Sequences of several steps may share a name: each is held against one of them, in their order.
    of_name: dict[str, deque[tuple[TokenBatch, int]]] = {}
    for batch, place in right.left_over():
        of_name.setdefault(batch.name_of(place), deque()).append((batch, place))
    for batch, place in left.left_over():
        others = of_name.get(batch.name_of(place))
        kind, reason = FaultKind.NO_TRAINER, f"{right.path} does not have this sequence"
        if others:
            kind, reason = FaultKind.OTHER_TOKENS, _difference(batch, place, *others.popleft(), key, right.path)
        _leave_out(batch, place, left.path, kind, reason, faults)
    for batch, place in chain.from_iterable(of_name.values()):
        reason = f"{left.path} does not have this sequence"
        _leave_out(batch, place, right.path, FaultKind.NO_ROLLOUT, reason, faults)


def _leave_out(batch: TokenBatch, place: int, path: Path, kind: FaultKind, reason: str, faults: Faults) -> None:
    message = f"{reason}; the sequence is left out"
    fault = Fault(path, kind, message, batch.line_of(place), batch.name_of(place))
    faults.add(fault, sequences=1, tokens=int(batch.lengths_S[place]))


def _difference(mine: TokenBatch, place: int, other: TokenBatch, other_place: int, key: _Key, path: Path) -> str:
    """Return why two sequences of one prompt and sample are no partners."""
    lengths = int(mine.lengths_S[place]), int(other.lengths_S[other_place])
    if lengths[0] != lengths[1]:
        return f"{lengths[0]} tokens here, {lengths[1]} in {path}"
    for name in key.columns:
        values = _at_first(mine, name)[place], _at_first(other, name)[other_place]
        # A column that neither has here is NaN twice.
        if str(values[0]) != str(values[1]):
            return f"{name} is {values[0]:g} here and {values[1]:g} in {path}"
    my_ids_T, other_ids_T = (
        batch.token_id_T[batch.offsets[at] :][: lengths[0]] for batch, at in ((mine, place), (other, other_place))
    )
    first = int(np.argmax(my_ids_T != other_ids_T))
    return (
        f"token {first} is {my_ids_T[first]} here and {other_ids_T[first]} in {path}: the trainer scored other tokens "
        "(re-tokenised?)"
    )


def _location(batch: TokenBatch, place: int) -> str:
    line = batch.line_of(place)
    return batch.name_of(place) + ("" if line is None else f", line {line}")
