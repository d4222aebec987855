"""A gate, as `k3<0.015`: the limit of a metric, and the evidence of the steps so far."""

import math
import re
from dataclasses import dataclass, field, replace

from scipy.stats import binom

from rlaudit.curves.rounded_outwards import outwards
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
    # The narrowest limit that would have raised no alarm, if there was one, and where the middle of the steps that
    # raised it lies (95 %, steps taken as independent).
    would_pass: float | None = None
    would_pass_low: float | None = None
    would_pass_high: float | None = None


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
        limit = None if self.alarm is None else self._would_pass()
        low, high = (None, None) if limit is None else self._middle()
        interval = "" if low is None or high is None else f" ({low:.3g} to {high:.3g})"
        passing = "" if limit is None else f"; a limit of {limit:g} would have passed{interval}"
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
            because=self.in_words() + passing,
            would_pass=limit,
            would_pass_low=low,
            would_pass_high=high,
        )

    def _would_pass(self) -> float | None:
        """Return the narrowest limit with which the same steps raise no alarm; None if no limit does, as for NaN."""
        ranked = sorted((value for value in self.values.values() if math.isfinite(value)), reverse=not self.gate.below)
        fails, passes = -1, len(ranked)
        while passes - fails > 1:
            middle = (fails + passes) // 2
            limit = outwards(ranked[middle], up=self.gate.below, beyond=True)
            if self._alarms_at(limit):
                fails = middle
            else:
                passes = middle
        return None if passes == len(ranked) else outwards(ranked[passes], up=self.gate.below, beyond=True)

    def _alarms_at(self, limit: float) -> bool:
        gate, test = replace(self.gate, limit=limit), Exceedance()
        return any(test.add(gate.beyond(value)) * self.level >= 1.0 for value in self.values.values())

    def _middle(self) -> tuple[float | None, float | None]:
        """Return the 95 % interval of the median of the steps that raised the alarm, by their ranks."""
        values = sorted(value for step, value in self.values.items() if self.since is not None and step >= self.since)
        # The rank of the median is binomial; below six steps no rank leaves less than 2.5 % outside.
        rank = int(binom.ppf(0.025, len(values), 0.5))
        if rank < 1 or not all(map(math.isfinite, values)):
            return None, None
        return values[rank - 1], values[-rank]

    def _since(self) -> int:
        """Return the step from which on the surplus of steps beyond the gate is largest."""
        surplus, most, since = 0, 0, next(reversed(self.values))
        for step, value in reversed(self.values.items()):
            surplus += 1 if self.gate.beyond(value) else -1
            if surplus >= most:
                most, since = surplus, step
        return since
