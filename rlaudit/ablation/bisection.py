"""`rlaudit ablate RECIPE --bisect METRIC`: which release moved the figure, and then which setting of that release.

Each release is one arm with its defaults. The two neighbours between which the figure moves are then ablated with the
recipe's factors.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.ablation.halving import Bisection, Figure, bisect
from rlaudit.ablation.run import Ablation
from rlaudit.engines.environments.given_interpreters import GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.studies.arms.recipe import Point, Recipe
from rlaudit.layers import Layer, untested
from rlaudit.report.figures import number
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.bisection import Bisection as Reported
from rlaudit.report.parts.bisection import ReleaseFigure
from rlaudit.rules.advisories import crossed
from rlaudit.statistics.measurement.measure import all_metrics
from rlaudit.text.did_you_mean import did_you_mean
from rlaudit.vllm.builds import released_for
from rlaudit.vllm.moved import Change, VllmPart, moved, moved_values, text_of

if TYPE_CHECKING:
    from rlaudit.report.report import Report


@dataclass(frozen=True)
class Bisected:
    """The two releases between which a figure moves, and all measured ones."""

    # The recipe that ablates these two; None if the ends agree.
    pair: Recipe | None
    # Their interpreters.
    given: GivenInterpreters
    # Every release that was measured.
    reported: Reported

    def report(self) -> "Report":
        """Return the report for ends that agree."""
        measured = self.reported.measured
        because = f"{self.reported.metric} of both releases agrees: no neighbours were ablated"
        report = new_report(
            "ablate",
            0,
            before=measured[0].version,
            after=measured[-1].version,
            layers=[untested(layer, because) for layer in Layer],
        )
        report["bisection"] = self.reported
        return report


def bisected(ablation: Ablation, recipe: Recipe, metric: str, given: GivenInterpreters) -> Bisected:
    """Measure releases until the figure differs between two neighbours.

    Raises UsageError for an unknown metric or a recipe without two releases, NotFinished for an end without a figure.
    """
    if metric not in all_metrics():
        raise UsageError(
            f"--bisect {metric}: there is no such metric", did_you_mean(metric, all_metrics(), "list metrics")
        )
    accelerator, progress = ablation.accelerator, ablation.progress
    block = recipe.blocks[0]
    if block.reference is None or Version(block.reference.version) >= Version(block.candidate.version):
        raise UsageError(
            "--bisect needs a recipe whose first block has a reference of an older release than its candidate",
            "rlaudit ablate v0-to-v1 --bisect mean_ratio_minus_one, or a config with --from and --to",
        )
    ends = (Version(block.reference.version), Version(block.candidate.version))
    between = releases_between(*ends, accelerator, given)
    points = {ends[0]: block.reference, ends[1]: block.candidate}
    engines: dict[Version, str] = {}

    def point_of(release: Version) -> Point:
        """Return the recipe's point for an end, else the candidate of this release with its default engine."""
        return points.get(release, block.candidate.model_copy(update={"version": str(release), "engine": None}))

    def measure(release: Version) -> Figure | None:
        alone: dict[str, Any] = {
            "reference": None,
            "candidate": point_of(release),
            "factors": {},
            "parity": [],
            "repeats": 0,
            "arms": [],
        }
        try:
            report = ablation.report(
                recipe.model_copy(update={"blocks": [block.model_copy(update=alone)]}), given.of((str(release),))
            )
        except NotFinished as error:  # the release has no usable environment
            if release in ends:
                raise
            progress.note(f"  {release}: {metric} was not measured: {error.message}")
            return None
        (arm,) = report["arms"]
        measurement = arm.measurements.get(metric)
        if measurement is None or measurement.value is None or measurement.low is None or measurement.high is None:
            why = arm.error.message if arm.error else "it has no interval"
            progress.note(f"  {release}: {metric} was not measured: {why}")
            return None
        figure = Figure(measurement.value, measurement.low, measurement.high)
        engines[release] = str(arm.resolved["engine"])
        interval = f"[{number(figure.low)}, {number(figure.high)}]"
        progress.note(f"  {release}: {metric} {number(figure.value)} {interval}")
        return figure

    bisection = bisect(between, measure)
    if bisection is None:
        raise NotFinished(
            f"--bisect: {metric} of vLLM {ends[0]} or {ends[1]} could not be measured", "the lines above say why"
        )
    reported = _result(bisection, metric, engines, accelerator)
    if bisection.neighbours is None:
        return Bisected(None, given, reported)
    old, new = bisection.neighbours
    neighbours = block.model_copy(update={"reference": point_of(old), "candidate": point_of(new)})
    pair = recipe.model_copy(update={"blocks": [neighbours]})
    return Bisected(pair, given.of([str(old), str(new)]), reported)


def releases_between(
    first: Version, last: Version, accelerator: Accelerator, given: GivenInterpreters
) -> tuple[Version, ...]:
    """Return the releases from the first to the last that can run here: those given, else those published.

    Raises UsageError if a command without a release is given.
    """
    if given.engine:
        raise UsageError("--bisect needs several releases, and --python names none", "Write --python VERSION=COMMAND.")
    candidates = sorted(map(Version, given.by_release)) or released_for(accelerator.kind)
    return (first, *(release for release in candidates if first < release < last), last)


def _result(bisection: Bisection, metric: str, engines: Mapping[Version, str], accelerator: Accelerator) -> Reported:
    moves: list[str] = []
    defects: list[str] = []
    neighbours = None
    if bisection.neighbours is not None:
        old, new = bisection.neighbours
        neighbours = (str(old), str(new))
        machine = machine_of(accelerator)
        values = (move for move in moved(old, new, machine) if move.change is Change.VALUE and move.why)
        declared = (move for move in values if move.part != VllmPart.RESOLVED)
        moves = [
            f"{move.name}: {text_of(move.before)} -> {text_of(move.after)}"
            for move in (*moved_values(old, new, machine, v0=engines[old] == "V0"), *declared)
        ]
        window = crossed(old, new)
        defects = [
            f"{name}, {word}: {advisory.sentence}"
            for word, advisories in (("entered", window.entered), ("left", window.left))
            for name, advisory in advisories.items()
        ]
    return Reported(
        metric=metric,
        measured=[
            ReleaseFigure(version=str(release), engine=engines[release], **asdict(figure))
            for release, figure in bisection.figures.items()
        ],
        neighbours=neighbours,
        unmeasured=list(map(str, bisection.unmeasured)),
        elsewhere=list(map(str, bisection.elsewhere)),
        moved=moves,
        advisories=defects,
    )
