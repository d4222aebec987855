"""The report of a canary."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.diagnosis.canary import (
    CLIP_RATE,
    ENTROPY,
    IN_FLIGHT,
    KL,
    LAG,
    REWARD,
    JudgedArm,
    exit_code,
    judge,
    judge_claims,
)
from rlaudit.laboratory.studies.canary.run import FinishedCanary
from rlaudit.laboratory.weight_path import came_over_nccl, in_words, loading_path
from rlaudit.layers import Layer, untested
from rlaudit.report.new_report import new_report
from rlaudit.report.of_curves import curves_of
from rlaudit.report.parts.canary import Canary, CanaryArm, CanaryLevels
from rlaudit.report.parts.curves import Curves

if TYPE_CHECKING:
    from rlaudit.report.report import Report

ONE_SEED = (
    "one seed of the reference shows no spread between seeds: its band is an assumption (rlaudit curves says which)"
)
NOT_TESTED = "a training shows that curves part and when, not why"
# Which command tells why, by layer.
NEXT = {
    Layer.SEMANTIC: "rlaudit ablate v0-to-v1",
    Layer.INFERENCE_PATH: "for settings: rlaudit ablate v0-to-v1; for updates: rlaudit ablate weight-update",
    Layer.OBJECTIVE: "what this leaves is for the objective to correct: rlaudit ablate v0-to-v1",
}


def document_of(run: FinishedCanary, *, fails: bool) -> "Report":
    """Return the report. fails: whether a claim that does not hold, or a separation, makes the exit code 1."""
    recipe = run.plan.recipe
    arms = judge(run)
    claims = judge_claims(recipe, arms)
    missing = [problem for arm in arms for problem in _problems(arm)]
    return {
        **new_report(
            "ablate",
            exit_code(arms, claims, fails=fails),
            before=recipe.arms[0].version,
            after=recipe.arms[1].version,
            layers=[untested(layer, NOT_TESTED, command) for layer, command in NEXT.items()],
            not_seen=[*missing, *([ONE_SEED] if len(arms[0].curves) == 1 else []), *_unseen(run)],
        ),
        "description": recipe.description,
        "blocks": [],
        "canary": Canary(
            training=recipe.training.model_dump(mode="json"),
            alpha=recipe.alpha,
            arms=[_arm(arm, place, _transport(run, arm)) for place, arm in enumerate(arms)],
            claims=claims,
            cost=run.bookkeeping.cost,
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
        lines.append("updates of the weights while requests run were not tested: engine and trainer took turns")
    if not came_over_nccl(training.result.get("transport") for training in run.trainings):
        lines.append("weights over NCCL were not tested; how the weights came is said above")
    if run.setup.accelerator.kind == "cpu":
        lines.append(
            "CUDA was not seen: on a CPU asynchronous scheduling and CUDA graphs are off, and bfloat16 has "
            "other kernels"
        )
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
        lag=_mean_lag(arm),
        lag_bound=arm.arm.updates.lag,
        met_in_flight=int(sum(values.sum() for values in arm.series(IN_FLIGHT))),
        transport=transport,
        curves=_curves(arm),
        logs=[
            str(Path(*training.metrics.parts[-3:]))
            for training in arm.trainings
            if training.metrics and training.curves
        ],
    )


def _curves(arm: JudgedArm) -> Curves | None:
    """Return what `rlaudit curves` says of the arm, but for what the order suggests.

    It takes what begins within the first steps for older than any update; here an update comes after every step.
    """
    if arm.comparison is None:
        return None
    curves = curves_of(arm.comparison)
    return replace(curves, order=replace(curves.order, suggests="", next=""))


def _mean_lag(arm: JudgedArm) -> float | None:
    """Return the mean over seeds and steps; None if a seed did not log it."""
    lags = [float(values.mean()) for values in arm.series(LAG)]
    return sum(lags) / len(lags) if lags else None
