"""A gate: what a metric has to be, as `k3<0.015`, and what the steps so far say of it."""

import math
import re
from dataclasses import dataclass, field

from rlaudit.errors import UsageError
from rlaudit.statistics.exceedance import Exceedance

_WRITTEN = re.compile(r"\s*(?P<metric>[^<>=\s]+)\s*(?P<holds>[<>])\s*(?P<limit>[^<>=\s]+)\s*")


@dataclass(frozen=True)
class Gate:
    """metric: a log's key, or the name that rlaudit has for it. below: whether it must stay below the limit."""

    metric: str
    below: bool
    limit: float

    def __str__(self) -> str:
        return f"{self.metric}{'<' if self.below else '>'}{self.limit:g}"

    def beyond(self, value: float) -> bool:
        """Return whether a value breaks it, as one that is no number does."""
        return not (value < self.limit if self.below else value > self.limit)


def parse_gate(text: str) -> Gate:
    """Raises UsageError for a text that is no gate."""
    match = _WRITTEN.fullmatch(text)
    try:
        limit = float(match["limit"]) if match else math.nan
    except ValueError:
        limit = math.nan
    if match is None or not math.isfinite(limit):
        raise UsageError(f"--gate {text!r} is no metric with a limit", "for example: --gate 'k3<0.015'")
    return Gate(match["metric"], match["holds"] == "<", limit)


@dataclass
class Watched:
    """A gate over one series. key: what the log calls it. values: by step, those that were seen, in order.

    alarm: the step at which there was evidence enough, None if there was not. since: the step at which the clearest
    evidence against the gate begins.
    """

    gate: Gate
    key: str
    level: float
    values: dict[int, float] = field(default_factory=dict)
    alarm: int | None = None
    since: int | None = None
    evidence: float = 1.0
    _test: Exceedance = field(default_factory=Exceedance)

    def see(self, step: int, value: float) -> bool:
        """Count a step beyond the last one; whether that is the one that raises the alarm."""
        if self.values and step <= next(reversed(self.values)):
            return False
        self.values[step] = value
        self.evidence = max(self.evidence, self._test.add(self.gate.beyond(value)))
        if self.alarm is not None or self.evidence * self.level < 1.0:
            return False
        self.alarm, self.since = step, self._since()
        return True

    @property
    def steps_beyond(self) -> int:
        """Steps seen that break the gate."""
        return sum(self.gate.beyond(value) for value in self.values.values())

    def said(self) -> str:
        """Return what the steps so far say."""
        if self.alarm is None:
            return f"{self.steps_beyond} of {len(self.values)} steps beyond it: no evidence that it is most of them"
        from_then = [value for step, value in self.values.items() if self.since is not None and step >= self.since]
        beyond = sum(self.gate.beyond(value) for value in from_then)
        return f"{beyond} of {len(from_then)} steps from {self.since} on are beyond it: seen at step {self.alarm}"

    def _since(self) -> int:
        """Return the step from which on the surplus of steps beyond the gate is largest."""
        surplus, most, since = 0, 0, next(reversed(self.values))
        for step, value in reversed(self.values.items()):
            surplus += 1 if self.gate.beyond(value) else -1
            if surplus >= most:
                most, since = surplus, step
        return since
