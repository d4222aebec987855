"""At which step a curve of an arm leaves the band of the reference's seeds, and which claims of the recipe hold.

Decided by the sequential test of `rlaudit curves` (curves/separation.py), with all seeds on both sides. Not covered:
the cause. Several causes may bend the curves of a training; `ablate` with arms and with weight updates separates them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.curves.comparison import Comparison, CurveMetric, Outcome, compare
from rlaudit.curves.curve import Run
from rlaudit.laboratory.studies.canary.recipe import CanaryRecipe, Claim, TrainingArm
from rlaudit.laboratory.studies.canary.run import FinishedCanary, FinishedTraining
from rlaudit.layers import Verdict

CLIP_RATE, KL, ENTROPY = "rl/clamp_log_ratio_new_old_indicator", "rl/kl_new_old", "rl/entropy"
REWARD, LOGPROBS, RATIO, LAG = "rl/reward", "rl/new_logprobs", "rl/ratio_new_old", "stats/lag"
# Requests that were in flight at the last update.
IN_FLIGHT = "rlaudit/in_flight"
# The curves of the write-up.
JUDGED = (CLIP_RATE, KL, ENTROPY, REWARD, LOGPROBS, RATIO)
ANY = "any"
SHARE_OF_RUN = 6


@dataclass(frozen=True)
class JudgedArm:
    """One arm."""

    arm: TrainingArm
    trainings: tuple[FinishedTraining, ...]
    # With the reference; None for the reference and for an arm without curves.
    comparison: Comparison | None

    @property
    def curves(self) -> tuple[Run, ...]:
        """The curves of the trainings that ended."""
        return tuple(training.curves for training in self.trainings if training.curves is not None)

    @property
    def results(self) -> dict[str, CurveMetric]:
        """The result of each metric, by key."""
        return {} if self.comparison is None else {result.name: result for result in self.comparison.results}

    @property
    def separated(self) -> list[CurveMetric]:
        """The metrics that left the band, earliest first."""
        results = [result for result in self.results.values() if result.outcome is Outcome.SEPARATED]
        return sorted(results, key=lambda result: result.detected_step or 0)

    def series(self, key: str) -> list[Floats]:
        """Return a curve's values, seed by seed; [] if a seed did not log it."""
        values = [run.curves[key].values for run in self.curves if key in run.curves]
        return values if len(values) == len(self.curves) else []

    def level(self, key: str, *, end: bool = False) -> float | None:
        """Return the mean over seeds and over the first, or last, sixth of the steps."""
        means = []
        for values in self.series(key):
            steps = max(1, len(values) // SHARE_OF_RUN)
            means.append((values[-steps:] if end else values[:steps]).mean())
        return float(np.mean(means)) if means else None


@dataclass(frozen=True, kw_only=True)
class CanaryClaim:
    """A claim of the recipe, judged by the curves."""

    says: str
    arm: str
    metric: str
    expects: Literal["separated", "not separated"]
    # MATCH if it holds.
    verdict: Verdict
    because: str


def judge(run: FinishedCanary) -> list[JudgedArm]:
    """Compare every arm's curves with those of the reference, which comes first."""
    recipe = run.plan.recipe
    reference, *others = [JudgedArm(arm, run.of_arm(arm.name), None) for arm in recipe.arms]
    return [reference, *(_compare(arm, reference, recipe) for arm in others)]


def _compare(arm: JudgedArm, reference: JudgedArm, recipe: CanaryRecipe) -> JudgedArm:
    if not reference.curves or not arm.curves:
        return arm
    comparison = compare(reference.curves, arm.curves, JUDGED, recipe.alpha, recipe.seed)
    return JudgedArm(arm.arm, arm.trainings, comparison)


def judge_claims(recipe: CanaryRecipe, arms: Sequence[JudgedArm]) -> list[CanaryClaim]:
    """Judge every claim of the recipe."""
    by_name = {arm.arm.name: arm for arm in arms}
    claims = []
    for claim in recipe.claims:
        verdict, because = _verdict(claim, _decisive(claim, by_name[claim.arm]))
        claims.append(CanaryClaim(**claim.model_dump(), verdict=verdict, because=because))
    return claims


def _decisive(claim: Claim, arm: JudgedArm) -> CurveMetric | None:
    """Return the result that decides the claim: if it is about any metric, the first that separated."""
    if claim.metric != ANY:
        return arm.results.get(claim.metric)
    decided = [result for result in arm.results.values() if result.outcome is not Outcome.UNKNOWN]
    return next(iter([*arm.separated, *decided]), None)


def _verdict(claim: Claim, result: CurveMetric | None) -> tuple[Verdict, str]:
    """Return whether the claim holds (MATCH), does not (MISMATCH) or is not decided, and why."""
    if result is None:
        return Verdict.INCONCLUSIVE, "the arm has no such curve"
    because = f"{result.name}: {result.because}"
    if result.outcome is Outcome.UNKNOWN:
        return Verdict.INCONCLUSIVE, because
    if result.outcome.value == claim.expects:
        return Verdict.MATCH, because
    # A difference that is too small to be seen beside the seeds' spread may exist.
    hidden = result.outcome is Outcome.NOT_SEPARATED and result.statistic is not None
    return Verdict.INCONCLUSIVE if hidden else Verdict.MISMATCH, because


def exit_code(arms: Sequence[JudgedArm], claims: Sequence[CanaryClaim], *, fails: bool) -> int:
    """Return 3 if a training did not end or a claim is not decided, else 1 for a claim that does not hold, else 0.

    Without claims each arm counts as a candidate of `rlaudit curves`: 3 if nothing of it could be compared, 1 if a
    curve separated. fails: whether 1 is returned at all.
    """
    if any(training.curves is None for arm in arms for training in arm.trainings):
        return 3
    if claims:
        codes = {Verdict.MATCH: 0, Verdict.MISMATCH: int(fails)}
        return max(codes.get(claim.verdict, 3) for claim in claims)
    return max(arm.comparison.exit_code(fails=fails) for arm in arms if arm.comparison)
