"""The report of a canary."""

from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.curves.comparison import Outcome
from rlaudit.documents.curves import curves_of
from rlaudit.laboratory.studies.canary.judge import (
    CLIP_RATE,
    ENTROPY,
    KL,
    REWARD,
    JudgedArm,
    JudgedClaim,
    judge,
    judge_claims,
)
from rlaudit.laboratory.studies.canary.run import FinishedCanary
from rlaudit.laboratory.studies.canary.words import layers_of
from rlaudit.laboratory.weight_path import came_over_nccl, in_words, loading_path
from rlaudit.layers import Verdict
from rlaudit.report.new_report import new_report
from rlaudit.report.parts.canary import Canary, CanaryArm, CanaryClaim, CanaryLevels
from rlaudit.report.parts.run import Cost

if TYPE_CHECKING:
    from rlaudit.report.report import Report

ONE_SEED = (
    "one seed of the reference shows no spread between seeds: its band is an assumption (rlaudit curves says which)"
)


def document_of(run: FinishedCanary, *, fail_on_mismatch: bool) -> "Report":
    """Return the report, whose layers are those of the first arm after the reference: the migration as it is.

    `exit_code` is 3 if a training did not end, else 1 for a mismatch of those layers if that is to fail, else 0.
    """
    recipe = run.plan.recipe
    arms = judge(run)
    layers = layers_of(arms[1])
    missing = [problem for arm in arms for problem in _problems(arm)]
    mismatch = any(layer.verdict is Verdict.MISMATCH for layer in layers)
    seeds = len(arms[0].curves)
    return {
        **new_report(
            "ablate",
            3 if missing else int(fail_on_mismatch and mismatch),
            before=recipe.arms[0].version,
            after=recipe.arms[1].version,
            layers=layers,
            not_seen=[*missing, *([ONE_SEED] if seeds == 1 else []), *_unseen(run)],
        ),
        "description": recipe.description,
        "blocks": [],
        "canary": Canary(
            training=recipe.training.model_dump(mode="json"),
            alpha=recipe.alpha,
            felt=arms[0].felt,
            arms=[_arm(arm, place, _transport(run, arm)) for place, arm in enumerate(arms)],
            claims=[_of_claim(judged) for judged in judge_claims(recipe, arms)],
            cost=_cost(run),
            provenance=run.setup.provenance(),
        ),
    }


def _problems(arm: JudgedArm) -> list[str]:
    return [
        f"{training.run.name}: {training.failure.message if training.failure else training.status}"
        for training in arm.trainings
        if training.curves is None
    ]


def _unseen(run: FinishedCanary) -> list[str]:
    lines = []
    if not any(arm.updates.lag for arm in run.plan.recipe.arms):
        lines.append("weights updated while requests run: engine and trainer took turns")
    if not came_over_nccl(training.result.get("transport") for training in run.trainings):
        lines.append("weights over NCCL: how they came is said below the arms")
    if run.setup.accelerator.kind == "cpu":
        lines.append("CUDA: on a CPU asynchronous scheduling and CUDA graphs are off, and bfloat16 has other kernels")
    return lines


def _transport(run: FinishedCanary, arm: JudgedArm) -> str | None:
    """Return what brought the weights and what loaded them, as the engine's process reported."""
    handed = arm.arm.updates
    device = run.setup.accelerator.kind
    for training in arm.trainings:
        if training.status == "ok":
            path = loading_path(handed.path, handed.transport, training.result.get("kind"), device)
            return in_words(path, training.result.get("transport"))
    return None


def _arm(arm: JudgedArm, place: int, transport: str | None) -> CanaryArm:
    return CanaryArm(
        name=arm.arm.name,
        version=arm.arm.version,
        role="candidate" if place else "reference",
        trainings=len(arm.trainings),
        ended=len(arm.curves),
        problems=_problems(arm),
        levels=CanaryLevels(
            reward_first=arm.level(REWARD),
            reward_last=arm.level(REWARD, end=True),
            clip_rate=arm.level(CLIP_RATE, end=True),
            kl=arm.level(KL, end=True),
            entropy_last=arm.level(ENTROPY, end=True),
        ),
        lag=arm.lag,
        lag_bound=arm.arm.updates.lag,
        max_lag=arm.max_lag,
        met_in_flight=arm.met,
        flight_k3=arm.flight,
        transport=transport,
        backend_start=arm.start,
        backend_later=arm.later,
        curves=None if arm.comparison is None else curves_of(arm.comparison),
        layers=layers_of(arm),
        logs=[
            str(Path(*training.metrics.parts[-3:]))
            for training in arm.trainings
            if training.metrics and training.curves
        ],
    )


def _of_claim(judged: JudgedClaim) -> CanaryClaim:
    claim, result = judged.claim, judged.result
    if result is None:
        because = "the arm has no such curve"
    elif result.outcome is Outcome.SEPARATED:
        because = f"{result.name} separated at step {result.detected}"
    else:
        because = f"{result.name}: {result.because}"
    return CanaryClaim(
        says=claim.says,
        arm=claim.arm,
        metric=claim.metric,
        expects=claim.expects,
        verdict=judged.verdict,
        because=because,
    )


def _cost(run: FinishedCanary) -> Cost:
    books = run.bookkeeping
    return Cost(
        seconds=books.seconds,
        cells_run=books.cells_run,
        cells_kept=books.cells_kept,
        damaged=books.damaged,
        peak_memory_mib=books.peak_memory_mib,
    )
