"""The trainer's logprobs of recorded sequences: rows of its function, joined by the ids of the completion.

One function makes the logprobs of the policy that is trained, of the old one and of the reference. Covered: which of
them a call was for, by gradient mode, by the framework's method that asked for it, by the model that was called and by
its adapters. Models are known within one process: a process that trains nothing may hold a reference or a copy. A call
that none of these decide is counted as undecided, and so is a method that has scored one sequence twice with different
results: a reference may be the policy with other weights put in. Recomputation inside the backward pass repeats a call,
and rows that match no recorded sequence are of other data (evaluation, supervised fine-tuning): both are counted.

A row may hold any number of completions, with their prompts or without. Completions of several prompts with the same
tokens (an end of sequence at once) are known by what lies before them; without that, by the order of the rows, if a
call without gradients has them in the order of their requests; training calls are shuffled.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.recording.encoded_numbers import NotNumbers, float32s, whole_numbers
from rlaudit.recording.recorded_lines import Damage
from rlaudit.tokens.recorded.beginnings import Beginnings

Row = NDArray[np.float32]

# A method that scores for two purposes scores every sequence twice; a batch filled up with copies repeats a few.
MOST_REPEATED = 0.25


class Role(StrEnum):
    """What a call of the trainer's function was for."""

    CURRENT = "current"
    OLD = "old"
    REFERENCE = "reference"
    UNDECIDED = "undecided"


class Unused(StrEnum):
    """Why a row of the trainer's function is in no figure."""

    RECOMPUTED = "were recomputed in the backward pass"
    NO_SEQUENCE = "match no recorded sequence (other data, or other tokens than were sampled)"
    AMBIGUOUS = "match sequences of several prompts with the same tokens"
    UNDECIDED = "are of a model that is neither known to be trained nor known as a reference"


@dataclass(frozen=True)
class Caller:
    """What is known of a call; None for what is not."""

    # The number of the process.
    process: int
    gradients: bool
    # By which method of the framework.
    asked_for: str | None
    # Of the model.
    number: int | None
    class_name: str | None
    trainable: bool | None
    # Whether they were on.
    adapters: bool | None


@dataclass(frozen=True)
class Scored:
    """A sequence's logprobs in one call."""

    # On the trainer's clock, whose name is `clock`.
    at: float
    clock: str
    logprobs_T: Row


@dataclass(frozen=True, slots=True)
class Known:
    """A sequence as its front end knows it."""

    prompt: str
    # On its clock.
    finished: float
    clock: str
    front: int
    # Of the weights that sampled its last token, -1 if unknown.
    version: int
    # Of its request, None if unknown.
    order: int | None


@dataclass
class TrainerRows:
    """The first row of each sequence for each caller after it had finished.

    Moments of two clocks are in no order; that a completion is scored proves that it had been sampled.
    """

    beginnings: Beginnings
    # The sequences, by their numbers.
    known: Sequence[Known]
    # Sequences that a row was of, or another of the same tokens.
    ambiguous: set[int] = field(default_factory=set)
    # once, again: how many sequences a caller has scored, and how often it scored one again with another result.
    once: Counter[Caller] = field(default_factory=Counter)
    again: Counter[Caller] = field(default_factory=Counter)
    # Sequence -> caller -> row.
    scored: dict[int, dict[Caller, Scored]] = field(default_factory=dict)
    callers: Counter[Caller] = field(default_factory=Counter)
    unused: Counter[Unused] = field(default_factory=Counter)
    rows: int = 0
    # When the last call was, by clock.
    last: dict[str, float] = field(default_factory=dict)
    # The dtypes in which the model of each caller computed, None for a call whose dtype is unknown.
    computed: dict[Caller, set[str | None]] = field(default_factory=dict)

    def read(self, process: int, records: Iterable[tuple[int, dict[str, Any]]], clock: str, damage: Damage) -> None:
        """Add the `trainer` records of one process. clock: the name of its clock."""
        for line, record in records:
            at = record["at"]
            self.last[clock] = max(self.last.get(clock, -np.inf), at)
            if record["backward"]:
                self.unused[Unused.RECOMPUTED] += len(record["rows"])
                self.rows += len(record["rows"])
                continue
            try:
                ids, values = whole_numbers(record["ids"]), float32s(record["logprobs"])
            except NotNumbers as error:
                damage.add(f"a call of the trainer's function whose numbers are wrong is left out: {error}", line)
                continue
            stretches = _stretches(record, len(ids))
            if stretches is None or len(ids) != len(values):
                damage.add("a call of the trainer's function whose stretches do not fit its ids is left out", line)
                continue
            caller = _caller(process, record)
            self.computed.setdefault(caller, set()).add(_computed_in(record["model"] or {}))
            ids_N, logprobs_N = np.asarray(ids, dtype=np.int64), np.asarray(values, dtype=np.float32)
            self._join(ids_N, logprobs_N, stretches, caller, at, clock)

    def _join(
        self, ids_N: NDArray[np.int64], logprobs_N: Row, stretches: "_Stretches", caller: Caller, at: float, clock: str
    ) -> None:
        self.callers[caller] += 1
        completions = list(self.beginnings.find(ids_N, stretches.begins, stretches.lengths))
        candidates = [
            [number for number in completion.numbers if self._may_be_scored(number, at, clock)]
            for completion in completions
        ]
        # A row of all sequences has them in its own order, a row each has them in that of the rows.
        rows = [stretches.rows[completion.stretch] for completion in completions]
        places = rows if len(set(rows)) == len(rows) else list(range(len(rows)))
        in_order: Mapping[int, Sequence[int]] = {}
        if not caller.gradients:
            in_order = self._in_order(list(zip(places, candidates, strict=True)))
        joined = set()
        for place, completion, numbers in zip(places, completions, candidates, strict=True):
            if not numbers:
                continue
            joined.add(completion.stretch)
            self.rows += 1
            if place not in in_order and len({self.known[number].prompt for number in numbers}) > 1:
                self.unused[Unused.AMBIGUOUS] += 1
                self.ambiguous.update(numbers)
            else:
                logprobs_T = logprobs_N[completion.first : completion.first + completion.length].copy()
                self._keep(in_order.get(place, numbers), caller, Scored(at, clock, logprobs_T))
        self.rows += len(stretches.rows) - len(joined)
        self.unused[Unused.NO_SEQUENCE] += len(stretches.rows) - len(joined)

    def _may_be_scored(self, number: int, at: float, clock: str) -> bool:
        """Return whether a sequence may have finished by then. Moments of two clocks are in no order."""
        sequence = self.known[number]
        return sequence.clock != clock or sequence.finished <= at

    def _in_order(self, met: Sequence[tuple[int, Sequence[int]]]) -> Mapping[int, Sequence[int]]:
        """Return the sequence of each row, if all rows can be those of successive requests; {} if not.

        Two rows that can be of one sequence only have to agree: one would agree with itself in any order.
        """
        certain = [(place, self.known[numbers[0]].order) for place, numbers in met if len(numbers) == 1]
        firsts = {order - place for place, order in certain if order is not None}
        if len(certain) < 2 or len(firsts) != 1:
            return {}
        first = firsts.pop()
        ordered = {}
        for place, numbers in met:
            ordered[place] = [number for number in numbers if self.known[number].order == first + place]
            if numbers and not ordered[place]:
                return {}
        return ordered

    def _keep(self, numbers: Sequence[int], caller: Caller, scored: Scored) -> None:
        """Keep a row for one of the latest sequences with the same tokens that has none of this caller."""
        latest = self.known[numbers[-1]].version
        for number in numbers:
            if self.known[number].version == latest and caller not in self.scored.get(number, {}):
                self.scored.setdefault(number, {})[caller] = scored
                self.once[caller] += 1
                return
        first = self.scored[numbers[-1]][caller].logprobs_T
        self.again[caller] += not np.array_equal(first, scored.logprobs_T)

    def late(self) -> frozenset[int]:
        """Return the sequences that no call of a trainer scored, because they came too late for all.

        A trainer with another clock had ended, as far as is proven, when the last sequence finished that it scored.
        """
        ended: dict[tuple[int, str], float] = {}
        for number, calls in self.scored.items():
            for call in calls.values():
                key = self.known[number].front, call.clock
                ended[key] = max(ended.get(key, -np.inf), self.known[number].finished)
        return frozenset(
            number
            for number, sequence in enumerate(self.known)
            if number not in self.scored
            and self.scored
            and all(
                sequence.finished > (last if clock == sequence.clock else ended.get((sequence.front, clock), np.inf))
                for clock, last in self.last.items()
            )
        )

    def policy_dtypes(self) -> frozenset[str | None]:
        """Return the dtypes in which the policy's logprobs were computed, old or current; None for an unknown one."""
        roles = self.roles()
        of_policy = [dtypes for caller, dtypes in self.computed.items() if roles[caller] in (Role.OLD, Role.CURRENT)]
        return frozenset().union(*of_policy)

    def roles(self) -> Mapping[Caller, Role]:
        """Return what the calls of each caller were for."""
        return {caller: self._role(caller) for caller in self.callers}

    def _role(self, caller: Caller) -> Role:
        if caller.gradients:
            return Role.CURRENT
        if caller.asked_for == Role.REFERENCE:
            return Role.REFERENCE
        trained = [other for other in self.callers if other.gradients and other.process == caller.process]
        of_model = _role_of_model(caller, trained)
        has_one_use = self.again[caller] <= MOST_REPEATED * self.once[caller]
        is_old = of_model is Role.UNDECIDED and caller.asked_for == Role.OLD and has_one_use
        return Role.OLD if is_old else of_model


def _computed_in(model: Mapping[str, Any]) -> str | None:
    dtype = model.get("dtype")
    return dtype if isinstance(dtype, str) and model.get("casts") is False else None


@dataclass(frozen=True)
class _Stretches:
    """Which parts of a function's rows are recorded."""

    rows: Sequence[int]
    begins: NDArray[np.int64]
    # Of each, as they lie behind one another.
    lengths: NDArray[np.int64]


def _stretches(record: Mapping[str, Any], count: int) -> _Stretches | None:
    """Return what a record's ids are of; None if its fields do not fit together."""
    rows, begins, lengths = record["rows"], record["begins"], record["lengths"]
    if not len(rows) == len(begins) == len(lengths) or sum(lengths) != count:
        return None
    return _Stretches(rows, np.array(begins, dtype=np.int64), np.array(lengths, dtype=np.int64))


def _caller(process: int, record: Mapping[str, Any]) -> Caller:
    model = record["model"] or {}
    number, class_name = model.get("number"), model.get("class")
    trainable, adapters = model.get("trainable"), model.get("adapters")
    return Caller(
        process,
        record["gradients"],
        record["asked_for"],
        number if isinstance(number, int) else None,
        class_name if isinstance(class_name, str) else None,
        trainable if isinstance(trainable, bool) else None,
        adapters if isinstance(adapters, bool) else None,
    )


def _role_of_model(caller: Caller, trained: Sequence[Caller]) -> Role:
    if caller.number is None or not trained:
        return Role.UNDECIDED
    same = [other for other in trained if other.number == caller.number]
    if any(other.adapters and caller.adapters is False for other in same):
        return Role.REFERENCE
    if same:
        return Role.OLD
    # A wrapper of the trained model (DistributedDataParallel) has another number and class.
    is_another = caller.trainable is False or any(other.class_name == caller.class_name for other in trained)
    return Role.REFERENCE if is_another else Role.UNDECIDED
