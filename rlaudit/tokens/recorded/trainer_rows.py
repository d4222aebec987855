"""The trainer's logprobs of recorded sequences: rows of its function, joined by the ids of the completion.

One function makes the logprobs of the policy that is trained, of the old one and of the reference. Covered: which of
them a call was for, by gradient mode, by the model that was called and by its adapters. A call that none of these
decide is counted as undecided. Recomputation inside the backward pass repeats a call, and rows that match no recorded
sequence are of other data (evaluation, supervised fine-tuning): both are counted.
Not covered: rows that hold several completions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.recorder.arrays import NotNumbers, logprobs, whole_numbers
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
    AMBIGUOUS = "match sequences of several prompts"
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
    """A sequence's logprobs in one call. at: on the clock of the engine."""

    at: float
    logprobs_T: Row


@dataclass
class TrainerRows:
    """The first row of each sequence for each caller after it had finished.

    prompts, finished, versions (of the weights): of each sequence, by its number.
    scored: sequence -> caller -> row. last: when the last call was.
    """

    beginnings: Beginnings
    prompts: Sequence[str]
    finished: Sequence[float]
    versions: Sequence[int]
    scored: dict[int, dict[Caller, Scored]] = field(default_factory=dict)
    callers: Counter[Caller] = field(default_factory=Counter)
    unused: Counter[Unused] = field(default_factory=Counter)
    rows: int = 0
    last: float = -np.inf

    def read(self, records: Iterable[tuple[int, dict[str, Any]]], shift: float, damage: Damage) -> None:
        """Add the `trainer` records of one process. shift: seconds from its clock to that of `finished`."""
        for line, record in records:
            rows = len(record["rows"])
            self.rows += rows
            at = record["at"] + shift
            self.last = max(self.last, at)
            if record["backward"]:
                self.unused[Unused.RECOMPUTED] += rows
                continue
            try:
                ids, values = whole_numbers(record["ids"]), logprobs(record["logprobs"])
            except NotNumbers as error:
                damage.add(f"a call of the trainer's function whose numbers are wrong is left out: {error}", line)
                continue
            shape = record["shape"]
            if len(shape) != 2 or not shape[1] or shape[0] * shape[1] != len(ids) or len(ids) != len(values):
                damage.add("a call of the trainer's function that does not fit its shape is left out", line)
                continue
            ids_RT = np.asarray(ids, dtype=np.int64).reshape(shape)
            self._join(ids_RT, np.asarray(values, dtype=np.float32).reshape(shape), _caller(record), at)

    def _join(self, ids_RT: NDArray[np.int64], logprobs_RT: Row, caller: Caller, at: float) -> None:
        self.callers[caller] += 1
        joined = 0
        for row, length, numbers in self.beginnings.longest(ids_RT):
            joined += 1
            sampled = [number for number in numbers if self.finished[number] <= at]
            if len({self.prompts[number] for number in numbers}) > 1:
                self.unused[Unused.AMBIGUOUS] += 1
            elif not sampled:
                self.unused[Unused.NO_SEQUENCE] += 1
            else:
                self._keep(sampled, caller, Scored(at, logprobs_RT[row, :length].copy()))
        self.unused[Unused.NO_SEQUENCE] += len(ids_RT) - joined

    def _keep(self, numbers: Sequence[int], caller: Caller, scored: Scored) -> None:
        """Keep a row for one of the latest sequences with the same tokens that has none of this caller."""
        latest = self.versions[numbers[-1]]
        for number in (one for one in numbers if self.versions[one] == latest):
            held = self.scored.setdefault(number, {})
            if caller not in held:
                held[caller] = scored
                return

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
