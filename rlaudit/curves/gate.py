"""A gate, as `k3<0.015`: the limit of a metric, and the evidence of the steps so far."""

import math
import re
from dataclasses import dataclass, field

from rlaudit.errors import UsageError
from rlaudit.statistics.exceedance import Exceedance
from rlaudit.text.counted import counted

_WRITTEN = re.compile(r"\s*(?P<metric>[^<>=\s]+)\s*(?P<holds>[<>])\s*(?P<limit>[^<>=\s]+)\s*")


@dataclass(frozen=True)
class Gate:
    """A limit of a metric."""

    # A log's key, or rlaudit's name.
    metric: str
    # Whether the metric must stay below the limit, or above.
    below: bool
    limit: float

    def __str__(self) -> str:
        return f"{self.metric}{'<' if self.below else '>'}{self.limit:g}"

    def beyond(self, value: float) -> bool:
        """Return whether a value breaks it, as NaN does."""
        return not (value < self.limit if self.below else value > self.limit)


def parse_gate(text: str) -> Gate:
    """Parse METRIC<LIMIT or METRIC>LIMIT. Raises UsageError for other texts."""
    match = _WRITTEN.fullmatch(text)
    try:
        limit = float(match["limit"]) if match else math.nan
    except ValueError:
        limit = math.nan
    if match is None or not math.isfinite(limit):
        raise UsageError(f"--gate {text!r} is no metric with a limit", "for example: --gate 'k3<0.015'")
    return Gate(match["metric"], match["holds"] == "<", limit)


@dataclass(frozen=True, kw_only=True)
class HeldGate:
    """A gate over one metric. evidence: the most there ever was; alarm_evidence: what raises it."""

    gate: str
    # What the log calls it.
    metric: str
    canonical: str
    limit: float
    steps: int
    first_step: int | None
    last_step: int | None
    # How many break the gate.
    steps_beyond: int
    last_value: float | None
    evidence: float
    alarm_evidence: float
    # The step at which there was evidence enough.
    alarm_step: int | None
    # The step at which the clearest evidence against the gate begins.
    since_step: int | None
    because: str


@dataclass
class Watched:
    """A gate over one series."""

    gate: Gate
    # What the log calls the series.
    key: str
    level: float
    # By step, in order.
    values: dict[int, float] = field(default_factory=dict)
    # The step at which there was evidence enough.
    alarm: int | None = None
    # The step at which the clearest evidence against the gate begins.
    since: int | None = None
    evidence: float = 1.0
    _test: Exceedance = field(default_factory=Exceedance)

    def see(self, step: int, value: float) -> bool:
        """Count a step beyond the last one; return whether it raises the alarm."""
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

    def in_words(self) -> str:
        """Return the evidence so far in a sentence."""
        if self.alarm is None:
            seen = f"{self.steps_beyond} of {counted(len(self.values), 'step')}"
            return f"{self.gate} was violated at {seen}, which is no evidence of a lasting change"
        from_then = [value for step, value in self.values.items() if self.since is not None and step >= self.since]
        beyond = sum(self.gate.beyond(value) for value in from_then)
        steps = f"{beyond} of {counted(len(from_then), 'step')}"
        return f"from step {self.since} on, {self.gate} was violated at {steps}; certain from step {self.alarm}"

    def held(self, canonical: str) -> HeldGate:
        """Return what was seen. canonical: rlaudit's name of the metric, or ""."""
        steps = list(self.values)
        last = self.values[steps[-1]] if steps else math.nan
        return HeldGate(
            gate=str(self.gate),
            metric=self.key,
            canonical=canonical,
            limit=self.gate.limit,
            steps=len(steps),
            first_step=steps[0] if steps else None,
            last_step=steps[-1] if steps else None,
            steps_beyond=self.steps_beyond,
            last_value=None if math.isnan(last) else last,
            evidence=self.evidence,
            alarm_evidence=1.0 / self.level,
            alarm_step=self.alarm,
            since_step=self.since,
            because=self.in_words(),
        )

    def _since(self) -> int:
        """Return the step from which on the surplus of steps beyond the gate is largest."""
        surplus, most, since = 0, 0, next(reversed(self.values))
        for step, value in reversed(self.values.items()):
            surplus += 1 if self.gate.beyond(value) else -1
            if surplus >= most:
                most, since = surplus, step
        return since
