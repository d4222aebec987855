"""A gate, as `k3<0.015`: the limit of a metric, and the evidence of the steps so far."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rlaudit.errors import UsageError
from rlaudit.statistics.exceedance import Exceedance

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


def held(gate: Gate, key: str, canonical: str, values: Mapping[int, float], level: float) -> HeldGate:
    """Hold a metric's values, by step in order, against a gate. level: the chance of a false alarm."""
    test, evidence, alarm, since = Exceedance(), 1.0, None, None
    beyond: dict[int, bool] = {}
    for step, value in values.items():
        beyond[step] = gate.beyond(value)
        evidence = max(evidence, test.add(beyond[step]))
        if alarm is None and evidence * level >= 1.0:
            alarm, since = step, _since(beyond)
    steps = list(values)
    last = values[steps[-1]] if steps else math.nan
    return HeldGate(
        gate=str(gate),
        metric=key,
        canonical=canonical,
        limit=gate.limit,
        steps=len(steps),
        first_step=steps[0] if steps else None,
        last_step=steps[-1] if steps else None,
        steps_beyond=sum(beyond.values()),
        last_value=None if math.isnan(last) else last,
        evidence=evidence,
        alarm_evidence=1.0 / level,
        alarm_step=alarm,
        since_step=since,
        because=_in_words(beyond, alarm, since),
    )


def _in_words(beyond: Mapping[int, bool], alarm: int | None, since: int | None) -> str:
    """Return the evidence in a sentence."""
    if alarm is None or since is None:
        return f"{sum(beyond.values())} of {len(beyond)} steps beyond it: no evidence that it is most of them"
    from_then = [is_beyond for step, is_beyond in beyond.items() if step >= since]
    return f"{sum(from_then)} of {len(from_then)} steps from {since} on are beyond it: seen at step {alarm}"


def _since(beyond: dict[int, bool]) -> int:
    """Return the step from which on the surplus of steps beyond the gate is largest."""
    surplus, most, since = 0, 0, next(reversed(beyond))
    for step, is_beyond in reversed(beyond.items()):
        surplus += 1 if is_beyond else -1
        if surplus >= most:
            most, since = surplus, step
    return since
