"""Compares the curves of a candidate with those of its reference, metric by metric."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.curves.curve import Curve, Run
from rlaudit.curves.logged_metric import Clip, Group
from rlaudit.curves.pairing import Pair, pair_up
from rlaudit.curves.separation import LONGEST, SHORTEST, Separation, separate, separates_from_constant

# A run whose first step is beyond this share of its last did not begin where its seeds were still alike.
BEGINNING = 0.1
# Below which there is only rounding, by metric: engines that round differently are not apart. float32 on both sides
# leaves a k3 of 1e-13 to 6e-12 nats (measured on 2026-11-22, 0.8.5 and 0.18.1 on a CPU).
ROUNDING = {"k3": 1e-8}
# What is logged at step 0, or at 1 by frameworks that count from there, was sampled before the first update. Later
# steps were not, and the first point of a curve that is logged every ten steps is one of them.
LAST_STEP_BEFORE_UPDATES = 1
# Points of each curve that are kept, enough to draw it.
KEPT_POINTS = 100
# Steps without a number at the end of a run that are no accident.
FEWEST_LOST = 2


class Outcome(StrEnum):
    """What can be said of one metric."""

    SEPARATED = "separated"
    NOT_SEPARATED = "not separated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Which steps were compared."""

    first: int
    last: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Point:
    """One step of both curves, with the reference's band."""

    step: int
    reference: float
    candidate: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class CurveMetric:
    """One metric of both runs, and whether it separated."""

    name: str
    candidate_name: str | None
    canonical: str | None
    group: Group | None
    framework: str | None
    definition: str | None
    clipping: str | None
    trainer_logprobs: str | None
    outcome: Outcome
    because: str
    detected_step: int | None
    onset_step: int | None
    reference_level: float | None
    candidate_level: float | None
    steps: Steps | None
    averaged_steps: int | None
    statistic: float | None
    threshold: float | None
    noise_ratio: float | None
    resolution: float | None
    logarithm: bool | None
    notes: Sequence[str]
    points: Sequence[Point]
    # Whether the step before the first update shows it alone; None if it is not separated.
    from_the_start: bool | None = None


@dataclass(frozen=True)
class Comparison:
    """All metrics of a candidate against a reference."""

    references: tuple[Run, ...]
    candidates: tuple[Run, ...]
    results: tuple[CurveMetric, ...]
    left: tuple[str, ...]
    # Chance of a false alarm anywhere in the report.
    alpha: float

    def exit_code(self, *, fails: bool) -> int:
        """Return 3 if nothing could be compared, 1 if something separated and that is to fail, else 0."""
        outcomes = {result.outcome for result in self.results}
        if outcomes <= {Outcome.UNKNOWN}:
            return 3
        return 1 if fails and Outcome.SEPARATED in outcomes else 0


def compare(
    references: Sequence[Run], candidates: Sequence[Run], wanted: Sequence[str], alpha: float, seed: int
) -> Comparison:
    """Test every pair of curves; the chance of a false alarm is shared out evenly between them.

    candidates: the seeds of one candidate, which log the same metrics.
    """
    pairing = pair_up(references, candidates[0], wanted)
    share = alpha / max(len(pairing.pairs), 1)
    results = [
        _broken_down(_result(pair, references, candidates, share, seed), pair, references, candidates)
        for pair in pairing.pairs
    ]
    results += [undecided(name, None, why) for name, why in pairing.unknown]
    return Comparison(tuple(references), tuple(candidates), tuple(results), pairing.left, alpha)


def undecided(name: str, pair: Pair | None, because: str) -> CurveMetric:
    """Return the metric before anything of it is compared. pair: None if the candidate has none of the name."""
    metric = None if pair is None else pair.metric
    return CurveMetric(
        name=name,
        candidate_name=None if pair is None else pair.candidate_key,
        canonical=None if metric is None else metric.canonical,
        group=None if metric is None else metric.group,
        framework=None if metric is None else metric.framework,
        definition=None if metric is None else metric.definition,
        clipping=metric.clip if metric is not None and metric.clip in {Clip.BEFORE, Clip.AFTER} else None,
        trainer_logprobs=(metric.weights.value or None) if metric else None,
        outcome=Outcome.UNKNOWN,
        because=because,
        detected_step=None,
        onset_step=None,
        reference_level=None,
        candidate_level=None,
        steps=None,
        averaged_steps=None,
        statistic=None,
        threshold=None,
        noise_ratio=None,
        resolution=None,
        logarithm=None,
        notes=(),
        points=(),
    )


def _result(pair: Pair, references: Sequence[Run], candidates: Sequence[Run], alpha: float, seed: int) -> CurveMetric:
    without = [run.name for run in candidates if pair.candidate_key not in run.curves]
    result = undecided(pair.reference_key, pair, f"not in {', '.join(without)}")
    if without:
        return result
    curves = [run.curves[pair.reference_key] for run in references]
    theirs = [run.curves[pair.candidate_key] for run in candidates]
    notes = tuple(dict.fromkeys(note for curve in theirs for note in _missing_notes(curves, curve)))
    steps = theirs[0].steps
    for curve in (*theirs, *curves):
        steps = np.intersect1d(steps, curve.steps, assume_unique=True)
    if len(steps) < SHORTEST:
        why = f"{len(steps)} steps are in all runs, at least {SHORTEST} are needed"
        return replace(result, because=why, notes=notes)
    averaged = -(-len(steps) // LONGEST)
    reference_RN = np.stack([_averaged(_at(curve, steps), averaged) for curve in curves])
    candidate_CN = np.stack([_averaged(_at(curve, steps), averaged) for curve in theirs])
    rounding = ROUNDING.get(pair.metric.canonical, -np.inf) if pair.metric else -np.inf
    if min(reference_RN.min(), candidate_CN.min()) < rounding:
        reference_RN, candidate_CN = np.maximum(reference_RN, rounding), np.maximum(candidate_CN, rounding)
        notes += (f"what is below {rounding:g} is rounding, and counts as {rounding:g}",)
    # Means over each side's seeds.
    reference_N, candidate_N = reference_RN.mean(axis=0), candidate_CN.mean(axis=0)
    # A group of steps is complete at its last step.
    ends = steps[averaged - 1 :: averaged][: len(candidate_N)]
    result = replace(
        result,
        steps=Steps(first=int(ends[0]), last=int(ends[-1]), count=len(ends)),
        averaged_steps=averaged,
        notes=notes,
        points=_points(ends, reference_N, candidate_N),
    )
    if np.ptp(reference_RN) <= 1e-12 * np.abs(reference_RN).max():
        return _against_constant(result, ends, reference_RN, candidate_CN, alpha)
    from_zero = bool(steps[0] <= BEGINNING * steps[-1])
    try:
        separation = separate(reference_RN, candidate_CN, alpha, from_zero, np.random.default_rng(seed))
    except ValueError as error:
        return replace(result, because=str(error))
    if separation.noise_ratio > 2:
        notes += (f"the candidate's noise from step to step is {separation.noise_ratio:.1f} times the reference's",)
    result = replace(
        result,
        statistic=separation.statistic,
        threshold=separation.threshold,
        noise_ratio=separation.noise_ratio,
        resolution=separation.resolution,
        logarithm=separation.in_logs,
        notes=notes,
        points=_points(ends, reference_N, candidate_N, separation),
    )
    if separation.detected is None or separation.onset is None:
        unseen = f"{'of a factor ' * separation.in_logs}below {separation.resolution:.2g}"
        because = (
            f"the test statistic stays at {separation.statistic:.1f}, below its limit of {separation.threshold:.1f}. "
            f"A lasting difference {unseen} would not be seen"
        )
        return replace(result, outcome=Outcome.NOT_SEPARATED, because=because)
    at_once = separation.at_first and averaged == 1 and bool(ends[0] <= LAST_STEP_BEFORE_UPDATES)
    detected, onset = (0, 0) if at_once else (separation.detected, separation.onset)
    window = slice(onset, detected + 1)
    limit = f"{separation.threshold:.1f}"
    because = (
        f"the runs differ from step {ends[separation.detected]} on: there the test statistic exceeds its limit of "
        f"{limit}"
    )
    if at_once:
        because += f". At step {ends[0]} the runs are already further apart than one run moves from step to step"
    if separation.last_statistic < separation.threshold / 2:
        notes += ("at the end of the curve the candidate is inside the band again",)
    return replace(
        result,
        outcome=Outcome.SEPARATED,
        because=because,
        detected_step=int(ends[detected]),
        onset_step=int(ends[onset]),
        reference_level=float(reference_N[window].mean()),
        candidate_level=float(candidate_N[window].mean()),
        notes=notes,
        from_the_start=at_once,
    )


def _points(
    steps: NDArray[np.int64], reference_N: Floats, candidate_N: Floats, separation: Separation | None = None
) -> list[Point]:
    """Return the curves and their band, thinned to what a picture needs."""
    kept = np.unique(np.linspace(0, len(steps) - 1, min(KEPT_POINTS, len(steps))).astype(int))
    return [
        Point(
            step=int(steps[place]),
            reference=float(reference_N[place]),
            candidate=float(candidate_N[place]),
            low=None if separation is None else float(separation.low_N[place]),
            high=None if separation is None else float(separation.high_N[place]),
        )
        for place in kept.tolist()
    ]


def _broken_down(result: CurveMetric, pair: Pair, references: Sequence[Run], candidates: Sequence[Run]) -> CurveMetric:
    """Return the result; separated, if a candidate that had not separated has no number to its end.

    A few steps without a number are a note: the metric may be of no token there.
    """
    if result.outcome is Outcome.SEPARATED:
        return result
    curves = [run.curves[pair.reference_key] for run in references]
    for curve in (run.curves[pair.candidate_key] for run in candidates if pair.candidate_key in run.curves):
        last = int(curve.steps[-1]) if curve.steps.size else -1
        lost = [step for step in curve.not_finite_steps if step > last]
        if len(lost) < FEWEST_LOST or any(
            reference.steps.size == 0 or reference.steps[-1] < lost[1] for reference in curves
        ):
            continue
        after = np.concatenate([reference.values[reference.steps >= lost[0]] for reference in curves])
        return replace(
            result,
            outcome=Outcome.SEPARATED,
            because=f"the candidate is NaN or infinite from step {lost[0]} to its end, and the reference is finite",
            detected_step=lost[0],
            onset_step=lost[0],
            reference_level=float(after.mean()),
        )
    return result


def _against_constant(
    result: CurveMetric, steps: NDArray[np.int64], reference_RN: Floats, candidate_CN: Floats, alpha: float
) -> CurveMetric:
    candidate_N, level = candidate_CN.mean(axis=0), float(reference_RN.mean(axis=0)[0])
    places = separates_from_constant(reference_RN, candidate_CN, alpha)
    if places is None:
        differing = int(np.sum(~np.isclose(candidate_N, level, rtol=1e-9, atol=0.0)))
        because = f"the reference is {level:g} at every step, the candidate differs at {differing} of them"
        return replace(result, outcome=Outcome.UNKNOWN if differing else Outcome.NOT_SEPARATED, because=because)
    detected, first = places
    return replace(
        result,
        outcome=Outcome.SEPARATED,
        because=f"the reference is {level:g} at every step, so there is no band. The candidate differs from step "
        f"{steps[first]} on, and by step {steps[detected]} often enough to show it (sign test)",
        detected_step=int(steps[detected]),
        onset_step=int(steps[first]),
        reference_level=level,
        candidate_level=float(candidate_N[first : detected + 1].mean()),
    )


def _missing_notes(references: Sequence[Curve], candidate: Curve) -> tuple[str, ...]:
    notes = [
        f"{whose} is NaN or infinite at {len(curve.not_finite_steps)} steps, the first is {curve.not_finite_steps[0]}"
        for whose, curve in (*(("the reference", curve) for curve in references), ("the candidate", candidate))
        if curve.not_finite_steps
    ]
    ends = [int(curve.steps[-1]) for curve in references if curve.steps.size]
    if ends and candidate.steps.size and candidate.steps[-1] < min(ends):
        notes.append(f"the candidate ends at step {candidate.steps[-1]}, and the reference goes on to {min(ends)}")
    return tuple(notes)


def _at(curve: Curve, steps: NDArray[np.int64]) -> Floats:
    return curve.values[np.searchsorted(curve.steps, steps)]


def _averaged(values: Floats, count: int) -> Floats:
    whole = len(values) // count * count
    return np.asarray(values[:whole].reshape(-1, count).mean(axis=1), dtype=np.float64)
