"""The loop: look, count what is new, raise alarms; until an alarm, a step, silence, or for ever."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rlaudit.errors import NotFinished
from rlaudit.watch.gate import Gate, Watched


class Growing(Protocol):
    """What is written while it is watched."""

    name: str
    what: str

    def grown(self) -> Iterator[tuple[str, str, Mapping[int, float]]]:
        """(key, rlaudit's own name for it or "", values by step) of every metric that may be new."""
        ...


@dataclass
class Watch:
    """Gates over what grows. alpha: the chance that any of them is ever raised over a run that is well.

    watched: by gate and key; each has its share of alpha. keys: every metric met.
    """

    growing: Growing
    gates: Sequence[Gate]
    alpha: float
    watched: dict[tuple[Gate, str], Watched] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    waiting: str = ""

    def look(self) -> list[Watched]:
        """Count what is new; the gates that are raised by it. `waiting` says why there is nothing to count."""
        raised = []
        try:
            for key, name, values in self.growing.grown():
                self.keys[key] = name
                for gate in self.gates:
                    if gate.metric in (key, name):
                        found = self._of(gate, key)
                        raised += [found for step, value in values.items() if found.see(step, value)]
        except NotFinished as error:
            self.waiting = str(error)
        else:
            self.waiting = ""
        return raised

    @property
    def unknown(self) -> list[Gate]:
        """Gates whose metric nobody has logged."""
        met = {gate for gate, _ in self.watched}
        return [gate for gate in self.gates if gate not in met]

    @property
    def last_step(self) -> int | None:
        """The last step that was counted."""
        return max((next(reversed(one.values)) for one in self.watched.values() if one.values), default=None)

    def _of(self, gate: Gate, key: str) -> Watched:
        known = self.watched.get((gate, key))
        if known is None:
            # The n-th series of a gate has 1 / (n (n + 1)) of the gate's share, as many as there may ever be.
            number = 1 + sum(gate == other for other, _ in self.watched)
            share = self.alpha / len(self.gates) / (number * (number + 1))
            known = self.watched[gate, key] = Watched(gate, key, share)
        return known


@dataclass(frozen=True)
class Until:
    """What ends it besides an alarm. once: the first look. step: this one was seen. silence: seconds without a step."""

    once: bool = False
    step: int | None = None
    silence: float | None = None


def follow(
    watch: Watch,
    until: Until,
    every: float,
    alarm: Callable[[Watched], bool],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Look every `every` seconds; why it ended. alarm: told of every gate that is raised, says whether to go on."""
    new_at, last = clock(), None
    while True:
        going_on = [alarm(found) for found in watch.look()]
        if not all(going_on):
            return "a gate was raised"
        if watch.last_step != last:
            new_at, last = clock(), watch.last_step
        if until.once:
            return "one look was asked for"
        if until.step is not None and last is not None and last >= until.step:
            return f"step {until.step} was reached"
        if until.silence is not None and clock() - new_at >= until.silence:
            return f"nothing new for {until.silence:g} seconds"
        sleep(every)
