"""What the evidence consists of: each part with its bound, in a size that two cores finish in minutes.

Every part has fixed seeds: what held once holds again, unless what judges has changed.
"""

from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

import numpy as np

from evidence.benchmarks import (
    bootstrap_coverage,
    curve_separation,
    distance_verdicts,
    honest_nulls,
    limits_of_detection,
)
from evidence.known_policy import confusion as known_policy
from evidence.known_policy.trials import rows
from evidence.known_policy.trials import run_trials as run_known_policy
from evidence.selftest.cells import cells
from evidence.selftest.confusion import Target, confusion_of
from evidence.selftest.run import run_trials
from evidence.selftest.sibling_document import targets_of
from evidence.selftest.sibling_trials import run_sibling_trials, sibling_labels
from rlaudit.causes.attribution.alignment_signature import proportion_interval


@dataclass(frozen=True)
class Found:
    """Whether a part keeps its bound, and its figures in sentences."""

    holds: bool
    figures: list[str]


def planted_faults(trials: int = 4) -> Found:
    """Return how often each cause is named that is planted blind, alone and in pairs, and how often another one."""
    labels = cells()
    return _of_targets(confusion_of("held-out", labels, run_trials("held-out", labels, trials, 0, 1)).targets)


def faults_in_ids(trials: int = 1) -> Found:
    """Return the same for logs that hold token ids and one logprob a token."""
    return _of_targets(targets_of(run_sibling_trials(sibling_labels(), trials, 0, 1)))


def known_policies(trials: int = 2) -> Found:
    """Return what `compare` says of log files of a second world, and how often at each dose of each fault."""
    trials_of = run_known_policy(rows(), trials, 0, 1)
    found = _of_targets(known_policy.targets_of(trials_of))
    return Found(found.holds, [*found.figures, *known_policy.table_of(trials_of)])


def _of_targets(targets: tuple[Target, ...]) -> Found:
    shares = [f"{one.title}: {one.events} of {one.trials}" for one in targets]
    return Found(all(one.met for one in targets), shares)


def honest_tables(tables: int = 200) -> Found:
    """Return how many tables with which nothing is wrong get a cause."""
    wrong = sum(bool(honest_nulls.with_a_cause(number, 0)[3]) for number in range(tables))
    return Found(wrong <= honest_nulls.MOST_WRONG * tables, [f"honest tables that get a cause: {wrong} of {tables}"])


def intervals(trials: int = 40) -> Found:
    """Return how often 95 % intervals hold the truth: of all metrics and layouts together, and of the worst."""
    found = [bootstrap_coverage.coverage(*layout, trials, 0) for layout in bootstrap_coverage.LAYOUTS]
    held = {(name, place): round(share * trials) for place, one in enumerate(found) for name, share in one.items()}
    low, high = bootstrap_coverage.LOW, bootstrap_coverage.HIGH
    share = sum(held.values()) / (trials * len(held))
    (name, _), worst = min(held.items(), key=lambda one: one[1])
    _, at_most = proportion_interval(worst, trials)
    return Found(
        low <= share <= high and at_most >= low,
        [f"95 % intervals hold the truth in {share:.3f} of {trials * len(held)}; fewest: {name}, {worst} of {trials}"],
    )


def distances(trials: int = 16) -> Found:
    """Return how often a distance is judged wrongly, with a reference and without, and what its intervals hold."""
    with redirect_stdout(StringIO()):
        held = distance_verdicts.against_a_reference(trials, 0)
        alone = distance_verdicts.without_one(max(trials // 4, 1), 0)
    wrong = [float(np.mean([most for most, _ in held])), float(np.mean(alone))]
    share = float(np.mean([one for _, one in held]))
    return Found(
        max(wrong) <= distance_verdicts.MOST_WRONG and share >= distance_verdicts.LOW,
        [
            f"distances judged wrongly: {wrong[0]:.3f} with a reference, {wrong[1]:.3f} without one",
            f"intervals of the distance hold the truth in {share:.3f} of {trials * len(held)}",
        ],
    )


def limits(trials: int = 10) -> Found:
    """Return how often faults of 1.5 times the limit of detection are found, and faults of half of it."""
    counts = {name: limits_of_detection.found(name, trials, 0) for name in limits_of_detection.PLANTED}
    return Found(
        all(limits_of_detection.keeps(large, small, trials) for large, small in counts.values()),
        [
            f"{name}, 1.5 times the limit of detection: {large} of {trials}, half of it: {small}"
            for name, (large, small) in counts.items()
        ],
    )


def curves(trials: int = 10, length: int = 200) -> Found:
    """Return how often curves separate that differ in their seed alone, and those that a change parts by 8 sd."""
    places = [
        (noise, references, trial)
        for noise in curve_separation.NOISES
        for references in (1, 3)
        for trial in range(trials)
    ]
    alarms = sum(curve_separation.found(*place[:2], length, place[2], 0.0) is not None for place in places)
    largest = max(curve_separation.SIZES)
    at = [curve_separation.found(*place[:2], length, place[2], largest) for place in places]
    seen = sum(step is not None and step >= length // 3 for step in at)
    at_least, _ = proportion_interval(alarms, len(places))
    return Found(
        at_least <= curve_separation.ALPHA and seen >= LEAST_SEEN * len(places),
        [
            f"false alarms of curves: {alarms} of {len(places)}, at a level of {curve_separation.ALPHA}",
            f"changes of {largest:g} sd seen: {seen} of {len(places)}",
        ],
    )


# Of changes of eight standard deviations; those that a random walk hides and early false alarms are the others.
LEAST_SEEN = 0.8
# The longest first: they run beside each other.
PARTS: Mapping[str, Callable[[], Found]] = {
    "known policies": known_policies,
    "distances": distances,
    "limits of detection": limits,
    "curves": curves,
    "planted faults": planted_faults,
    "honest tables": honest_tables,
    "faults in ids": faults_in_ids,
    "intervals": intervals,
}
