"""The trainer's logprobs of recorded sequences: rows of its function, joined by the ids of the completion.

One function makes the logprobs of the policy that is trained, of the old one and of the reference. Covered: which of
them a call was for, by gradient mode, by the model that was called and by its adapters. A call that none of these
decide is counted as undecided. Recomputation inside the backward pass repeats a call, and rows that match no recorded
sequence are of other data (evaluation, supervised fine-tuning): both are counted. Completions of several prompts with
the same tokens (an end of sequence at once) are known by the order of the rows, if a call without gradients has them in
the order of their requests; training calls are shuffled.
Not covered: rows that hold several completions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.recorder.arrays import NotNumbers, float32s, whole_numbers
from rlaudit.recorder.recorded_lines import Damage
from rlaudit.tokens.recorded.beginnings import Beginnings

Row = NDArray[np.float32]


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
    """What is known of a call. number: of the model; None if no caller named one. adapters: whether they were on."""

    gradients: bool
    number: int | None
    class_name: str | None
    trainable: bool | None
    adapters: bool | None


@dataclass(frozen=True)
class Scored:
    """A sequence's logprobs in one call. at: on the clock of the trainer's process, whose name `clock` is."""

    at: float
    clock: str
    logprobs_T: Row


@dataclass
class TrainerRows:
    """The first row of each sequence for each caller after it had finished.

    prompts, finished, clocks, versions (of the weights), orders (of the requests): of each sequence, by its number.
    ambiguous: sequences that a row was of, or another of the same tokens.
    scored: sequence -> caller -> row. last: when the last call was, by clock.
    Moments of two clocks are in no order; that a completion is scored proves that it had been sampled.
    """

    beginnings: Beginnings
    prompts: Sequence[str]
    finished: Sequence[float]
    clocks: Sequence[str]
    versions: Sequence[int]
    orders: Sequence[int | None]
    ambiguous: set[int] = field(default_factory=set)
    scored: dict[int, dict[Caller, Scored]] = field(default_factory=dict)
    callers: Counter[Caller] = field(default_factory=Counter)
    unused: Counter[Unused] = field(default_factory=Counter)
    rows: int = 0
    last: dict[str, float] = field(default_factory=dict)

    def read(self, records: Iterable[tuple[int, dict[str, Any]]], clock: str, damage: Damage) -> None:
        """Add the `trainer` records of one process. clock: the name of its clock."""
        for line, record in records:
            rows = len(record["rows"])
            self.rows += rows
            at = record["at"]
            self.last[clock] = max(self.last.get(clock, -np.inf), at)
            if record["backward"]:
                self.unused[Unused.RECOMPUTED] += rows
                continue
            try:
                ids, values = whole_numbers(record["ids"]), float32s(record["logprobs"])
            except NotNumbers as error:
                damage.add(f"a call of the trainer's function whose numbers are wrong is left out: {error}", line)
                continue
            shape = record["shape"]
            if len(shape) != 2 or not shape[1] or shape[0] * shape[1] != len(ids) or len(ids) != len(values):
                damage.add("a call of the trainer's function that does not fit its shape is left out", line)
                continue
            ids_RT = np.asarray(ids, dtype=np.int64).reshape(shape)
            places = record["rows"] if rows == shape[0] else range(shape[0])
            self._join(
                ids_RT, np.asarray(values, dtype=np.float32).reshape(shape), places, _caller(record), (at, clock)
            )

    def _join(
        self,
        ids_RT: NDArray[np.int64],
        logprobs_RT: Row,
        places: Sequence[int],
        caller: Caller,
        when: tuple[float, str],
    ) -> None:
        at, clock = when
        self.callers[caller] += 1
        met = [
            (row, length, [one for one in numbers if self.clocks[one] != clock or self.finished[one] <= at])
            for row, length, numbers in self.beginnings.longest(ids_RT)
        ]
        own = {} if caller.gradients else self._in_order([(places[row], numbers) for row, _, numbers in met])
        joined = 0
        for row, length, numbers in met:
            joined += bool(numbers)
            if places[row] not in own and len({self.prompts[one] for one in numbers}) > 1:
                self.unused[Unused.AMBIGUOUS] += 1
                self.ambiguous.update(numbers)
            elif numbers:
                self._keep(own.get(places[row], numbers), caller, Scored(at, clock, logprobs_RT[row, :length].copy()))
        self.unused[Unused.NO_SEQUENCE] += len(ids_RT) - joined

    def _in_order(self, met: Sequence[tuple[int, Sequence[int]]]) -> Mapping[int, Sequence[int]]:
        """Return the sequence of each row, if all rows can be those of successive requests; {} if not.

        Two rows that can be of one sequence only have to agree: one would agree with itself in any order.
        """
        known = [(place, self.orders[numbers[0]]) for place, numbers in met if len(numbers) == 1]
        firsts = {order - place for place, order in known if order is not None}
        if len(known) < 2 or len(firsts) != 1:
            return {}
        first = firsts.pop()
        own = {place: [one for one in numbers if self.orders[one] == first + place] for place, numbers in met}
        return own if all(own[place] for place, numbers in met if numbers) else {}

    def _keep(self, numbers: Sequence[int], caller: Caller, scored: Scored) -> None:
        """Keep a row for one of the latest sequences with the same tokens that has none of this caller."""
        latest = self.versions[numbers[-1]]
        for number in (one for one in numbers if self.versions[one] == latest):
            held = self.scored.setdefault(number, {})
            if caller not in held:
                held[caller] = scored
                return

    def late(self, fronts: Sequence[int]) -> frozenset[int]:
        """Return the sequences that came too late for every call of a trainer, none of which scored them.

        fronts: the number of each sequence's front end. A trainer with another clock had ended, as far as is proven,
        when the last sequence finished that it scored.
        """
        ended: dict[tuple[int, str], float] = {}
        for number, held in self.scored.items():
            for one in held.values():
                key = fronts[number], one.clock
                ended[key] = max(ended.get(key, -np.inf), self.finished[number])
        return frozenset(
            number
            for number, at in enumerate(self.finished)
            if number not in self.scored
            and self.scored
            and all(
                at > (last if clock == self.clocks[number] else ended.get((fronts[number], clock), np.inf))
                for clock, last in self.last.items()
            )
        )

    def roles(self) -> Mapping[Caller, Role]:
        """Return what the calls of each caller were for."""
        trained = [caller for caller in self.callers if caller.gradients]
        return {caller: _role(caller, trained) for caller in self.callers}


def _caller(record: Mapping[str, Any]) -> Caller:
    model = record["model"] or {}
    number, class_name = model.get("number"), model.get("class")
    trainable, adapters = model.get("trainable"), model.get("adapters")
    return Caller(
        record["gradients"],
        number if isinstance(number, int) else None,
        class_name if isinstance(class_name, str) else None,
        trainable if isinstance(trainable, bool) else None,
        adapters if isinstance(adapters, bool) else None,
    )


def _role(caller: Caller, trained: Sequence[Caller]) -> Role:
    if caller.gradients:
        return Role.CURRENT
    if caller.number is None or not trained:
        return Role.UNDECIDED
    same = [one for one in trained if one.number == caller.number]
    if any(one.adapters and caller.adapters is False for one in same):
        return Role.REFERENCE
    if same:
        return Role.OLD
    # A wrapper of the trained model (DistributedDataParallel) has a number and a class of its own.
    is_another = caller.trainable is False or any(one.class_name == caller.class_name for one in trained)
    return Role.REFERENCE if is_another else Role.UNDECIDED
