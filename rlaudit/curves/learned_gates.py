"""Gates learned from runs of today's stack: a limit of each metric that few further runs of that stack leave.

What a gate limits is the median of a part of a curve, so that single spikes decide nothing (NeMo-RL#1307): of the whole
curve, and of its end. Both are one number of each run; the limit is a tolerance bound over the runs, on logarithms if
the metric is positive at every step. Frameworks whose own gates look at other numbers have limits of these, learned in
the same way: SkyRL's asserts compare the last step, prime-rl's table each one.

Assumed: the runs are alike but for their seeds, and alike to the new one if nothing changed: same recipe, same steps.
A history whose level drifts, as after a change of data, breaks that.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.stats import t as student

from rlaudit.arrays import Floats
from rlaudit.curves.curve import BOOKKEEPING, Curve, Run
from rlaudit.curves.logged_metric import Worse
from rlaudit.curves.metric_names import keys_named, known_metric
from rlaudit.curves.rounded_outwards import outwards
from rlaudit.errors import NotFinished
from rlaudit.statistics.tolerance import tolerance_factor
from rlaudit.text.counted import counted

# How sure it is that a limit keeps its rate of false alarms. Runs are dear: 0.95 would cost ten runs a tenth more room.
CONFIDENCE = 0.9
FEWEST_RUNS = 2
# Fewer runs than this are reported with what they cost; ten are what SkyRL's CI takes its limits from.
ENOUGH_RUNS = 10
# The last tenth of a curve is its end, of this many steps at least: the median of fewer is at the mercy of two spikes.
END, SHORTEST_END = 0.1, 5
# A share of the value below which runs do not differ but round.
NO_SPREAD = 1e-9
INTERVAL = 0.95


class Part(StrEnum):
    """The number of a curve that a gate limits."""

    WHOLE = "median of all steps"
    END = "median of the last steps"
    LAST = "last step"
    EVERY = "every step"

    @property
    def judged(self) -> bool:
        """Whether rlaudit's own verdict rests on it; the others are for frameworks whose gates look there."""
        return self in {Part.WHOLE, Part.END}


class Verdict(StrEnum):
    """What a gate says of a run."""

    WITHIN = "within"
    OUTSIDE = "outside"
    UNKNOWN = "not judged"


@dataclass(frozen=True, kw_only=True)
class LearnedGate:
    """The limits of one number of one metric."""

    # What the logs call it.
    metric: str
    # rlaudit's name; "" if the meaning is not known.
    canonical: str
    part: Part
    # The first and the last of the steps that count.
    first_step: int
    last_step: int
    # None on a side on which more is no harm.
    low: float | None
    high: float | None
    # Of each run.
    values: tuple[float, ...]
    in_logs: bool

    @property
    def today(self) -> float:
        """The middle of the runs."""
        return float(np.median(self.values))

    def keeps(self, value: float) -> bool:
        """Return whether a value is within the limits; NaN is not."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def of(self, curve: Curve) -> float:
        """Return the number of a curve; a step without a number is beyond every limit."""
        return _number(curve, self.part, self.first_step, self.last_step, above=self.high is not None)


@dataclass(frozen=True, kw_only=True)
class GateSet:
    """Gates that belong together: a run of today's stack leaves any of them with a probability of alpha at most."""

    alpha: float
    confidence: float
    runs: tuple[str, ...]
    gates: tuple[LearnedGate, ...]
    # Metrics without a gate, and why.
    not_learned: Mapping[str, str]
    # What a reader must know of these runs.
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class JudgedGate:
    """A gate and a run."""

    gate: LearnedGate
    verdict: Verdict
    value: float | None
    # The narrowest limit that the run keeps, if it is outside, and where that limit lies if the run is repeated.
    would_pass: float | None
    would_pass_low: float | None
    would_pass_high: float | None
    because: str


def learn(runs: Sequence[Run], wanted: Sequence[str], alpha: float) -> GateSet:
    """Learn gates from runs: of the requested metrics, else of all that are known, else of all that are logged.

    Raises NotFinished for fewer than two runs, or without a metric that all of them log.
    """
    if len(runs) < FEWEST_RUNS:
        raise NotFinished(
            f"{counted(len(runs), 'run')} of today's stack: one run shows no spread between runs, so no limit follows",
            "give two at least, better five to ten: --gates-from RUN --gates-from RUN, or a folder of runs",
        )
    metrics, not_learned = _metrics(runs, wanted)
    numbers: dict[tuple[str, Part], tuple[tuple[float, ...], int, int]] = {}
    for metric in metrics:
        curves = [run.curves[metric] for run in runs]
        first, last = _common_steps(curves)
        if first is None or last is None:
            not_learned[metric] = "the runs have no step of this metric in common"
            continue
        above = _worse(metric) is not Worse.BELOW
        for part in Part:
            values = tuple(_number(curve, part, first, last, above=above) for curve in curves)
            if not all(map(math.isfinite, values)):
                not_learned[metric] = "a run has no number of this metric at too many steps"
            elif np.ptp(values) <= NO_SPREAD * np.abs(values).max():
                not_learned[metric] = f"its {part} is {values[0]:g} in every run, which shows no spread"
            else:
                numbers[metric, part] = (values, first, last)
    sides = sum(_sides(metric) for metric, part in numbers if part.judged and metric not in not_learned)
    gates = [
        _gate(metric, part, *number, [run.curves[metric] for run in runs], alpha / sides)
        for (metric, part), number in numbers.items()
        if metric not in not_learned
    ]
    if not gates:
        why = "; ".join(f"{metric}: {because}" for metric, because in not_learned.items())
        raise NotFinished(f"no gate can be learned from {counted(len(runs), 'run')}: {why or 'no common metric'}")
    return GateSet(
        alpha=alpha,
        confidence=CONFIDENCE,
        runs=tuple(run.name for run in runs),
        gates=tuple(gates),
        not_learned=not_learned,
        notes=tuple(_notes(runs, gates, alpha / sides)),
    )


def judge(gates: GateSet, run: Run) -> list[JudgedGate]:
    """Hold a run against the gates that decide, in their order."""
    return [_judged(gate, run) for gate in gates.gates if gate.part.judged]


def _metrics(runs: Sequence[Run], wanted: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the metrics that all runs log and that are to have a gate, and why others have none."""
    shared = set.intersection(*(set(run.curves) for run in runs))
    common = [key for key in runs[0].curves if key in shared]
    logged = dict.fromkeys(key for run in runs for key in run.curves)
    if wanted:
        chosen = [(name, keys_named(name, common)) for name in wanted]
        missing = {name: "not logged by every run" for name, keys in chosen if not keys}
        return list(dict.fromkeys(key for _, keys in chosen for key in keys)), missing
    known = [key for key in common if known_metric(key)]
    missing = {key: "not logged by every run" for key in logged if key not in shared and known_metric(key)}
    return known or [key for key in common if not BOOKKEEPING.search(key)], missing


def _common_steps(curves: Iterable[Curve]) -> tuple[int | None, int | None]:
    """Return the first and the last step that every curve reaches."""
    ends = [(int(curve.steps[0]), int(curve.steps[-1])) for curve in curves if curve.steps.size]
    first, last = max((first for first, _ in ends), default=0), min((last for _, last in ends), default=-1)
    return (first, last) if first <= last else (None, None)


def _number(curve: Curve, part: Part, first: int, last: int, *, above: bool) -> float:
    """Return the number of a part of a curve, NaN if it has no step there. above: whether the worst is the highest."""
    worst = math.inf if above else -math.inf
    series: dict[int, float] = dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
    series.update(dict.fromkeys(curve.not_finite_steps, worst))
    values = [series[step] for step in sorted(series) if first <= step <= last]
    if not values:
        return math.nan
    match part:
        case Part.WHOLE:
            return float(np.median(values))
        case Part.END:
            return float(np.median(values[-max(SHORTEST_END, round(END * len(values))) :]))
        case Part.LAST:
            return values[-1]
        case Part.EVERY:
            return max(values) if above else min(values)


def _worse(metric: str) -> Worse:
    known = known_metric(metric)
    return Worse.EITHER if known is None else known.worse


def _sides(metric: str) -> int:
    return 2 if _worse(metric) is Worse.EITHER else 1


def _gate(
    metric: str, part: Part, values: tuple[float, ...], first: int, last: int, curves: Sequence[Curve], beyond: float
) -> LearnedGate:
    in_logs = all(curve.values.min() > 0 for curve in curves)
    low, high = _limits(values, _worse(metric), in_logs, beyond)
    known = known_metric(metric)
    # One number is the worst step on one side only: above, if the metric may be worse on both.
    return LearnedGate(
        metric=metric,
        canonical="" if known is None else known.canonical,
        part=part,
        first_step=first,
        last_step=last,
        low=None if part is Part.EVERY and high is not None else low,
        high=high,
        values=values,
        in_logs=in_logs,
    )


def _limits(values: Sequence[float], worse: Worse, in_logs: bool, beyond: float) -> tuple[float | None, float | None]:
    scaled = _scaled(values, in_logs)
    reach = tolerance_factor(len(values), beyond, CONFIDENCE) * scaled.std(ddof=1)
    low, high = (_unscaled(scaled.mean() + sign * reach, in_logs) for sign in (-1, 1))
    return (
        None if worse is Worse.ABOVE else outwards(low, up=False),
        None if worse is Worse.BELOW else outwards(high, up=True),
    )


def _judged(gate: LearnedGate, run: Run) -> JudgedGate:
    key = _key_in(gate, run)
    if key is None:
        return _undecided(gate, "the new run does not log this metric")
    curve = run.curves[key]
    reached = max([*curve.steps[-1:].tolist(), *curve.not_finite_steps[-1:]], default=-1)
    if reached < gate.last_step:
        return _undecided(gate, f"the new run ends at step {reached}, the gate is of steps up to {gate.last_step}")
    value = gate.of(curve)
    if math.isnan(value):
        return _undecided(gate, f"the new run has no step from {gate.first_step} to {gate.last_step}")
    if gate.keeps(value):
        return JudgedGate(
            gate=gate, verdict=Verdict.WITHIN, value=value, would_pass=None, would_pass_low=None,
            would_pass_high=None, because="",
        )  # fmt: skip
    if math.isinf(value):
        return JudgedGate(
            gate=gate, verdict=Verdict.OUTSIDE, value=None, would_pass=None, would_pass_low=None,
            would_pass_high=None, because="this metric is NaN or infinite at half of these steps or more, so no "
            "limit would pass",
        )  # fmt: skip
    up = gate.high is not None and value > gate.high
    again = _again(gate, value)
    limit = outwards(value, up=up)
    interval = "" if again is None else f" ({again[0]:.3g} to {again[1]:.3g} if the run is repeated)"
    return JudgedGate(
        gate=gate,
        verdict=Verdict.OUTSIDE,
        value=value,
        would_pass=limit,
        would_pass_low=None if again is None else again[0],
        would_pass_high=None if again is None else again[1],
        because=f"a limit of {limit:g} would have passed{interval}",
    )


def _undecided(gate: LearnedGate, because: str) -> JudgedGate:
    return JudgedGate(
        gate=gate, verdict=Verdict.UNKNOWN, value=None, would_pass=None, would_pass_low=None, would_pass_high=None,
        because=because,
    )  # fmt: skip


def _again(gate: LearnedGate, value: float) -> tuple[float, float] | None:
    """Return where 95 % of runs like the new one lie, if they spread as the runs of today do."""
    if gate.in_logs and value <= 0:
        return None
    count = len(gate.values)
    spread = _scaled(gate.values, gate.in_logs).std(ddof=1)
    # One run is a draw from its stack, and so is the next: their difference has twice the variance.
    reach = float(student.isf((1 - INTERVAL) / 2, count - 1)) * spread * math.sqrt(2.0)
    centre = _scaled([value], gate.in_logs)[0]
    return _unscaled(centre - reach, gate.in_logs), _unscaled(centre + reach, gate.in_logs)


def _key_in(gate: LearnedGate, run: Run) -> str | None:
    """Return the run's key of the gate's metric: the same one, else the only one that means the same."""
    if gate.metric in run.curves:
        return gate.metric
    ours = known_metric(gate.metric)
    same = [key for key in run.curves if ours and (theirs := known_metric(key)) and theirs.meaning == ours.meaning]
    return same[0] if len(same) == 1 else None


def _notes(runs: Sequence[Run], gates: Sequence[LearnedGate], beyond: float) -> Iterable[str]:
    count = len(runs)
    if count < ENOUGH_RUNS:
        wider = tolerance_factor(count, beyond, CONFIDENCE) / tolerance_factor(ENOUGH_RUNS, beyond, CONFIDENCE)
        yield (
            f"{counted(count, 'run')} are few: limits lie {wider:.2g} times as far from today's level as "
            f"{ENOUGH_RUNS} runs of the same spread would put them"
        )
    if count > FEWEST_RUNS:
        for place, run in enumerate(runs):
            outside = [gate.metric for gate in gates if gate.part.judged and _alone_outside(gate, place, beyond)]
            if outside:
                yield (
                    f"{run.name} lies outside the limits that the other runs give ({', '.join(dict.fromkeys(outside))})"
                    ", and widens them: leave it out if it is not a run of today's stack"
                )


def _alone_outside(gate: LearnedGate, place: int, beyond: float) -> bool:
    others = [value for index, value in enumerate(gate.values) if index != place]
    low, high = _limits(others, _worse(gate.metric), gate.in_logs, beyond)
    value = gate.values[place]
    return (low is not None and value < low) or (high is not None and value > high)


def _scaled(values: Sequence[float], in_logs: bool) -> Floats:
    return np.log(values) if in_logs else np.asarray(values, dtype=np.float64)


def _unscaled(value: float, in_logs: bool) -> float:
    return float(np.exp(min(value, 700.0))) if in_logs else float(value)
