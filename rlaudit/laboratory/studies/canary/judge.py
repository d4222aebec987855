"""What the curves of an arm say against the reference's, and which layer its own logprobs convict.

Two questions are kept apart. Whether a curve left the band of the reference's seeds is decided by the sequential test
of `rlaudit curves` (curves/separation.py), with all seeds on both sides. Why it did is read without a band: the trainer
scored every batch with the very weights that the log says sampled it, so that what is left is no lag
(rlaudit/backend_k3 of trainer/train.py), before the first update and after it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.curves.comparison import Comparison, MetricResult, Outcome, compare
from rlaudit.curves.curve import Run
from rlaudit.laboratory.studies.canary.recipe import CanaryRecipe, Claim, TrainingArm
from rlaudit.laboratory.studies.canary.run import FinishedCanary, FinishedTraining
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode

CLIP_RATE, KL, ENTROPY = "rl/clamp_log_ratio_new_old_indicator", "rl/kl_new_old", "rl/entropy"
REWARD, LOGPROBS, RATIO, LAG = "rl/reward", "rl/new_logprobs", "rl/ratio_new_old", "stats/lag"
BACKEND = "rlaudit/backend_k3"
RAW, PROCESSED, FIRST, PREVIOUS = "rlaudit/raw_k3", "rlaudit/processed_k3", "rlaudit/first_k3", "rlaudit/previous_k3"
CACHED, FLIGHT, IN_FLIGHT, MAX_LAG = (
    "rlaudit/cached_tokens", "rlaudit/flight_k3", "rlaudit/in_flight", "rlaudit/max_lag",
)  # fmt: skip
# The curves of the write-up.
JUDGED = (CLIP_RATE, KL, ENTROPY, REWARD, LOGPROBS, RATIO)
ANY = "any"
# A reading that explains the logprobs leaves this share of what the trainer's own reading leaves. Raw logprobs leave
# 1e-9 of it in float32 and 1 % in bfloat16 (measured on 2026-11-22, k3 7e-5 against 8e-3).
LEFT_BY_THE_RIGHT_READING = 0.1
# Standard errors from which the mean ratio is not 1, and what it must be off by besides (diagnosis: meaning).
STANDARD_ERRORS, SHIFT = 4.0, 1e-3
# k3 in nats below which there is only rounding: float32 on both sides leaves 1e-13 to 6e-12 (`ROUNDING` of train.py).
ROUNDING = 1e-8
SHARE_OF_RUN = 6


class Semantic(StrEnum):
    """What the returned logprobs mean, as seen before the first update."""

    MEANT = "as the trainer takes them"
    RAW = "raw logprobs"
    NOT_DIVIDED = "the trainer does not divide by the temperature"
    SHIFTED = "shifted, and by no reading that was tried"
    UNKNOWN = "not known"


class Path(StrEnum):
    """What the execution does to logprobs of the right meaning."""

    CLEAN = "clean"
    FROM_START = "apart before any update"
    NOTHING_NEW = "no update arrives"
    ONE_LATE = "every update is one late"
    STALE_CACHE = "keys and values of older weights are reused"
    IN_PART = "updates arrive in part"
    OLD_KEYS = "requests in flight go on with keys and values of older weights"
    UNKNOWN = "not known"


class Objective(StrEnum):
    """What is left for the objective."""

    NOTHING = "nothing"
    LAG = "lag"
    NOT_JUDGED = "a layer before it is open"


@dataclass(frozen=True)
class JudgedArm:
    """One arm. comparison: with the reference, None for the reference and for an arm without curves.

    start, later: k3 of rollout and trainer at the weights that sampled, at the first step and at its worst afterwards.
    felt: the k3 from which differences are as large as the objective's clip range. lag: its mean over tokens, and
    max_lag the most of any. flight: k3 at the weights that sampled, of tokens after an update within their sequence;
    None if no update met a sequence. met: requests that were under way when an update came, in all.
    """

    arm: TrainingArm
    trainings: tuple[FinishedTraining, ...]
    comparison: Comparison | None
    semantic: Semantic
    path: Path
    objective: Objective
    start: float | None
    later: float | None
    felt: float
    lag: float
    correction: str | None
    max_lag: int = 0
    flight: float | None = None
    met: int = 0

    @property
    def curves(self) -> tuple[Run, ...]:
        """The curves of the trainings that ended."""
        return tuple(training.curves for training in self.trainings if training.curves is not None)

    @property
    def results(self) -> dict[str, MetricResult]:
        """What was found of each metric, by key."""
        return {} if self.comparison is None else {result.name: result for result in self.comparison.results}

    @property
    def separated(self) -> list[MetricResult]:
        """What left the band, the first first."""
        found = [result for result in self.results.values() if result.outcome is Outcome.SEPARATED]
        return sorted(found, key=lambda result: result.detected or 0)

    def level(self, key: str, *, end: bool = False) -> float | None:
        """Return the mean over seeds and over the first, or last, sixth of the steps."""
        values = [values_of(run, key) for run in self.curves]
        if not values or any(not found.size for found in values):
            return None
        share = [max(1, len(found) // SHARE_OF_RUN) for found in values]
        parts = [found[-n:] if end else found[:n] for found, n in zip(values, share, strict=True)]
        return float(np.mean([part.mean() for part in parts]))


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and what the curves make of it: MATCH holds, MISMATCH does not, else it is not decided."""

    claim: Claim
    verdict: Verdict
    result: MetricResult | None


def judge(run: FinishedCanary) -> list[JudgedArm]:
    """Judge every arm, the reference first."""
    recipe = run.plan.recipe
    references = [one.curves for one in run.of_arm(recipe.arms[0].name) if one.curves is not None]
    judged = [_judged(run, arm, references if place else []) for place, arm in enumerate(recipe.arms)]
    return [_with_its_twin(one, judged) for one in judged]


def judge_claims(recipe: CanaryRecipe, arms: Sequence[JudgedArm]) -> list[JudgedClaim]:
    """Judge every claim of the recipe. That nothing separated is no proof: it holds as far as the budget could see."""
    by_name = {arm.arm.name: arm for arm in arms}
    return [_claim(claim, by_name[claim.arm]) for claim in recipe.claims]


def _claim(claim: Claim, arm: JudgedArm) -> JudgedClaim:
    if claim.metric == ANY:
        results = [result for result in arm.results.values() if result.outcome is not Outcome.UNKNOWN]
        result = arm.separated[0] if arm.separated else results[0] if results else None
    else:
        result = arm.results.get(claim.metric)
    if result is None or result.outcome is Outcome.UNKNOWN:
        return JudgedClaim(claim, Verdict.INCONCLUSIVE, result)
    held = result.outcome.value == claim.expects
    if not held and result.outcome is Outcome.NOT_SEPARATED and result.separation is not None:
        # A difference below what the seeds leave visible may be there.
        return JudgedClaim(claim, Verdict.INCONCLUSIVE, result)
    return JudgedClaim(claim, Verdict.MATCH if held else Verdict.MISMATCH, result)


def felt_k3(recipe: CanaryRecipe) -> float:
    """Return the recipe's margin, or k3 of log ratios whose root mean square is the nearer end of the clip range."""
    if recipe.equivalence_margin is not None:
        return recipe.equivalence_margin
    ranges = recipe.objective
    return 0.5 * min(ranges.gspo_epsilon if recipe.training.objective == "gspo" else ranges.ppo_epsilon) ** 2


def values_of(run: Run, key: str) -> Floats:
    """Return a curve's values; none if it was not logged."""
    return run.curves[key].values if key in run.curves else np.empty(0)


def _judged(run: FinishedCanary, arm: TrainingArm, references: Sequence[Run]) -> JudgedArm:
    recipe = run.plan.recipe
    trainings = run.of_arm(arm.name)
    correction = arm.correction or recipe.training.correction
    curves = [training.curves for training in trainings if training.curves is not None]
    felt = felt_k3(recipe)
    found = None
    if references and curves:
        ours, theirs = ([above_rounding(run) for run in runs] for runs in (references, curves))
        found = compare(ours, theirs, list(JUDGED), recipe.alpha, recipe.seed)
    if not curves:
        return JudgedArm(
            arm, trainings, None, Semantic.UNKNOWN, Path.UNKNOWN, Objective.NOT_JUDGED, None, None, felt, 0.0,
            correction,
        )  # fmt: skip
    start = _over_seeds(curves, BACKEND, lambda values: float(values[0]))
    later = _over_seeds(curves, BACKEND, lambda values: float(values[1:].max()))
    lag = _over_seeds(curves, LAG, lambda values: float(values.mean()))
    semantic = _semantic(curves, arm, start, felt)
    flights = np.concatenate([values_of(run, FLIGHT) for run in curves])
    flight = float(flights.mean()) if flights.size else None
    path = _path(curves, start, later, felt) if semantic is Semantic.MEANT else Path.UNKNOWN
    if path is Path.CLEAN and flight is not None and flight > felt:
        path = Path.OLD_KEYS
    objective = Objective.NOT_JUDGED
    if path is Path.CLEAN:
        apart = _over_seeds(curves, KL, lambda values: float(values.max()))
        objective = Objective.LAG if lag > 0 and apart > felt else Objective.NOTHING
    return JudgedArm(
        arm, trainings, found, semantic, path, objective, start, later, felt, lag, correction,
        max_lag=_max_lag(curves), flight=flight,
        met=int(sum(float(values_of(run, IN_FLIGHT).sum()) for run in curves)),
    )  # fmt: skip


def above_rounding(run: Run) -> Run:
    """Return the run with a k3 of at least what rounding leaves: engines that round differently are not apart."""
    if KL not in run.curves:
        return run
    raised = replace(run.curves[KL], values=np.maximum(run.curves[KL].values, ROUNDING))
    return replace(run, curves={**run.curves, KL: raised})


def _over_seeds(curves: Sequence[Run], key: str, of: Callable[[Floats], float]) -> float:
    return float(np.mean([of(values_of(run, key)) for run in curves]))


def _max_lag(curves: Sequence[Run]) -> int:
    return max((int(values_of(run, MAX_LAG).max()) for run in curves if values_of(run, MAX_LAG).size), default=0)


def _semantic(curves: Sequence[Run], arm: TrainingArm, start: float, felt: float) -> Semantic:
    """Before the first update nothing but the meaning and the arithmetic can differ."""
    if start <= felt:
        return Semantic.MEANT
    readings = {name: _over_seeds(curves, name, lambda values: float(values[0])) for name in (RAW, PROCESSED)}
    best = min(readings, key=lambda name: readings[name])
    if readings[best] < LEFT_BY_THE_RIGHT_READING * start:
        return Semantic.RAW if best == RAW and arm.trainer.temperature == "divide" else Semantic.NOT_DIVIDED
    # Honest logprobs have a mean ratio of 1 under any noise; only steps without lag show it.
    ratios = np.concatenate([values_of(run, RATIO)[values_of(run, LAG) == 0] - 1.0 for run in curves])
    if ratios.size < 2:
        return Semantic.MEANT
    error = float(ratios.std(ddof=1) / np.sqrt(ratios.size))
    off = abs(float(ratios.mean()))
    return Semantic.SHIFTED if off > max(STANDARD_ERRORS * error, SHIFT) else Semantic.MEANT


def _path(curves: Sequence[Run], start: float, later: float, felt: float) -> Path:
    if start > felt:
        return Path.FROM_START
    if later <= felt:
        return Path.CLEAN
    for key, found in ((FIRST, Path.NOTHING_NEW), (PREVIOUS, Path.ONE_LATE)):
        # Logged only where the weights of the log do not fit.
        values = np.concatenate([values_of(run, key) for run in curves])
        if values.size and float(np.median(values)) <= felt:
            return found
    return Path.IN_PART


def _with_its_twin(one: JudgedArm, arms: Sequence[JudgedArm]) -> JudgedArm:
    """Stale keys and values are convicted by an arm that differs in nothing but that its cache is cleared."""
    hits = [float(values_of(run, CACHED).max()) for run in one.curves if values_of(run, CACHED).size]
    if one.path is not Path.IN_PART or not any(hits):
        return one
    cleared = {"clear_cache": True, "mode": PauseMode.WAIT}
    same = [
        other
        for other in arms
        if other.path is Path.CLEAN
        and other.arm.model_copy(update={"name": ""})
        == one.arm.model_copy(update={"name": "", "updates": one.arm.updates.model_copy(update=cleared)})
    ]
    return replace(one, path=Path.STALE_CACHE) if same else one
