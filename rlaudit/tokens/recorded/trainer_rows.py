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

from rlaudit.arrays import Floats
from rlaudit.recording.column import Column
from rlaudit.recording.kept_lines import TrainerCall
from rlaudit.recording.recorded_lines import Damage
from rlaudit.recording.recorded_process import Process
from rlaudit.tokens.recorded.beginnings import Beginnings
from rlaudit.tokens.recorded.whole_sequences import RecordedFront, WholeSequence

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
    AMBIGUOUS = "match completions of several prompts, so their prompt is unknown"
    UNDECIDED = "are of a model that is neither known to be trained nor known as a reference"


@dataclass(frozen=True)
class Caller:
    """What is known of a call; None for what is not. process: its number. asked_for: by which method of the framework.

    number: of the model. adapters: whether they were on.
    """

    process: int
    gradients: bool
    asked_for: str | None
    number: int | None
    class_name: str | None
    trainable: bool | None
    adapters: bool | None


@dataclass(frozen=True)
class Scored:
    """A sequence's logprobs in one call. at: on the trainer's clock, whose name is `clock`."""

    at: float
    clock: str
    logprobs: Column

    @property
    def logprobs_T(self) -> Floats:
        """The trainer's, in nats."""
        return np.asarray(self.logprobs.read(), dtype=np.float64)


@dataclass
class TrainerRows:
    """The first row of each sequence for each caller after it had finished.

    Moments of two clocks are in no order; that a completion is scored proves that it had been sampled.
    """

    beginnings: Beginnings
    # Sequences that a row was of, or another of the same tokens.
    ambiguous: set[WholeSequence] = field(default_factory=set)
    # How many sequences a caller has scored, and how often it scored one again with another result.
    once: Counter[Caller] = field(default_factory=Counter)
    again: Counter[Caller] = field(default_factory=Counter)
    scored: dict[WholeSequence, dict[Caller, Scored]] = field(default_factory=dict)
    unused: Counter[Unused] = field(default_factory=Counter)
    rows: int = 0
    # When the last call was, by clock.
    last: dict[str, float] = field(default_factory=dict)
    # Of each caller: the dtypes in which its model computed, None for a call whose dtype is unknown.
    computed: dict[Caller, set[str | None]] = field(default_factory=dict)

    def read(self, number: int, process: Process, damage: Damage) -> None:
        """Add the calls of one process."""
        clock = process.clock
        for call in process.trainer:
            self.last[clock] = max(self.last.get(clock, -np.inf), call.at)
            if call.backward:
                self.unused[Unused.RECOMPUTED] += len(call.rows)
                self.rows += len(call.rows)
            elif call.fits:
                caller = _caller(number, call)
                self.computed.setdefault(caller, set()).add(_computed_in(call.model))
                self._join(call, caller, clock)
            else:
                damage.add("a call of the trainer's function whose stretches do not fit its ids is left out", call.line)

    def _join(self, call: TrainerCall, caller: Caller, clock: str) -> None:
        completions = list(self.beginnings.find(call))
        candidates = [
            [sequence for sequence in completion.alike if _may_be_scored(sequence, call.at, clock)]
            for completion in completions
        ]
        # A row of all sequences has them in its own order, a row each has them in that of the rows.
        rows = [call.rows[completion.stretch] for completion in completions]
        places = rows if len(set(rows)) == len(rows) else list(range(len(rows)))
        in_order: Mapping[int, Sequence[WholeSequence]] = {}
        if not caller.gradients:
            in_order = _in_order(list(zip(places, candidates, strict=True)))
        joined = set()
        for place, completion, alike in zip(places, completions, candidates, strict=True):
            if not alike:
                continue
            joined.add(completion.stretch)
            self.rows += 1
            if place not in in_order and len({sequence.prompt for sequence in alike}) > 1:
                self.unused[Unused.AMBIGUOUS] += 1
                self.ambiguous.update(alike)
            else:
                logprobs = call.logprobs.part(completion.first, completion.length)
                self._keep(in_order.get(place, alike), caller, Scored(call.at, clock, logprobs))
        self.rows += len(call.rows) - len(joined)
        self.unused[Unused.NO_SEQUENCE] += len(call.rows) - len(joined)

    def _keep(self, alike: Sequence[WholeSequence], caller: Caller, scored: Scored) -> None:
        """Keep a row for one of the latest sequences with the same tokens that has none of this caller."""
        latest = alike[-1].version
        for sequence in alike:
            if caller not in self.scored.get(sequence, {}) and sequence.version == latest:
                self.scored.setdefault(sequence, {})[caller] = scored
                self.once[caller] += 1
                return
        first = self.scored[alike[-1]][caller].logprobs_T
        self.again[caller] += not np.array_equal(first, scored.logprobs_T)

    def late(self, sequences: Iterable[WholeSequence]) -> frozenset[WholeSequence]:
        """Return the sequences that no call of a trainer scored, because they came too late for all.

        A trainer with another clock had ended, as far as is proven, when the last sequence finished that it scored.
        """
        ended: dict[tuple[RecordedFront, str], float] = {}
        for sequence, calls in self.scored.items():
            for call in calls.values():
                key = sequence.front, call.clock
                ended[key] = max(ended.get(key, -np.inf), sequence.finished)
        return frozenset(
            sequence
            for sequence in sequences
            if sequence not in self.scored
            and self.scored
            and all(
                sequence.finished
                > (last if clock == sequence.front.clock else ended.get((sequence.front, clock), np.inf))
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
        return {caller: self._role(caller) for caller in self.computed}

    def _role(self, caller: Caller) -> Role:
        if caller.gradients:
            return Role.CURRENT
        if caller.asked_for == Role.REFERENCE:
            return Role.REFERENCE
        trained = [other for other in self.computed if other.gradients and other.process == caller.process]
        of_model = _role_of_model(caller, trained)
        has_one_use = self.again[caller] <= MOST_REPEATED * self.once[caller]
        is_old = of_model is Role.UNDECIDED and caller.asked_for == Role.OLD and has_one_use
        return Role.OLD if is_old else of_model


def _computed_in(model: Mapping[str, Any]) -> str | None:
    dtype = model.get("dtype")
    return dtype if isinstance(dtype, str) and model.get("casts") is False else None


def _may_be_scored(sequence: WholeSequence, at: float, clock: str) -> bool:
    """Return whether a sequence may have finished by then. Moments of two clocks are in no order."""
    return sequence.front.clock != clock or sequence.finished <= at


def _in_order(met: Sequence[tuple[int, Sequence[WholeSequence]]]) -> Mapping[int, Sequence[WholeSequence]]:
    """Return the sequence of each row, if all rows can be those of successive requests; {} if not.

    Two rows that can be of one sequence only have to agree: one would agree with itself in any order.
    """
    certain = [(place, alike[0].order) for place, alike in met if len(alike) == 1]
    firsts = {order - place for place, order in certain if order is not None}
    if len(certain) < 2 or len(firsts) != 1:
        return {}
    first = firsts.pop()
    ordered = {}
    for place, alike in met:
        ordered[place] = [sequence for sequence in alike if sequence.order == first + place]
        if alike and not ordered[place]:
            return {}
    return ordered


def _caller(process: int, call: TrainerCall) -> Caller:
    number, class_name = call.model.get("number"), call.model.get("class")
    trainable, adapters = call.model.get("trainable"), call.model.get("adapters")
    return Caller(
        process,
        call.gradients,
        call.asked_for,
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
