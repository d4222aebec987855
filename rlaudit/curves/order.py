"""In which order metrics separate, and what that suggests.

An order is claimed only where one metric had left its band before the other can have begun to move, at once or little
by little; two that begin together may be detected at different steps only because one is noisier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rlaudit.curves.comparison import LAST_STEP_BEFORE_UPDATES, Comparison, CurveMetric, Outcome
from rlaudit.curves.logged_metric import Group, Weights

TRAINING = (Group.OBJECTIVE, Group.POLICY, Group.REWARD, Group.LENGTH)
SWITCH_ON = {
    "TRL": "vllm_importance_sampling_correction logs sampling/sampling_logp_difference/mean",
    "verl": "actor_rollout_ref.rollout.calculate_log_probs logs training/rollout_probs_diff_mean",
    "ms-swift": "log_rollout_offpolicy_metrics logs rollout_correction/k3_kl",
    "OpenRLHF": "the importance-sampling correction logs vllm_kl",
}


class Precedence(StrEnum):
    """Who was first."""

    NOTHING = "nothing separated"
    FROM_THE_START = "apart from the first step"
    LOGPROBS_FIRST = "logprobs first"
    LOGPROBS_ONLY = "logprobs only"
    TRAINING_FIRST = "training first"
    TRAINING_ONLY = "training only"
    UNDECIDED = "order not decided"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Order:
    """Which group of metrics separated first, why, what that suggests, and what to do next."""

    precedence: Precedence
    because: str
    suggests: str
    next: str


def order_of(comparison: Comparison) -> Order:
    """Read the order of separation off a comparison."""
    compared = [result for result in comparison.results if result.outcome is not Outcome.UNKNOWN]
    separated = [result for result in compared if result.outcome is Outcome.SEPARATED]
    logprobs, training = _earliest(separated, (Group.LOGPROBS,)), _earliest(separated, TRAINING)
    if not separated:
        return Order(Precedence.NOTHING, "no metric left the noise band of its reference", "", "")
    if not any(result.group is Group.LOGPROBS for result in compared):
        return Order(
            Precedence.UNKNOWN,
            "no metric of the difference between trainer and rollout logprobs could be compared",
            "nothing, since these logs cannot show which moved first, the backend or the objective",
            _switch_on(comparison),
        )
    if logprobs is not None and training is not None:
        return _of_both(logprobs, training)
    if logprobs is not None:
        return Order(
            Precedence.LOGPROBS_ONLY,
            f"{_when(logprobs)}; no metric of the training differs",
            f"the backend, and training has not followed yet. {_reading(logprobs)}".strip(),
            "compare the rollouts of the first steps: rlaudit compare ROLLOUTS; "
            "compare both engines: rlaudit ablate CONFIG --from A --to B",
        )
    if training is not None:
        return Order(
            Precedence.TRAINING_ONLY,
            f"{_when(training)}; no logprob metric differs",
            "the objective, the data or the environment rather than the backend. Not excluded: raw logprobs under "
            "top-p or top-k, which leave the difference at 0 and are off-policy all the same",
            "compare the two configs, then: rlaudit inspect CONFIG --from A --to B",
        )
    return Order(Precedence.UNDECIDED, "only metrics of no known meaning separated", "", "")


def _of_both(logprobs: CurveMetric, training: CurveMetric) -> Order:
    because = f"{_when(logprobs)}; {_when(training)}"
    if _before(logprobs, training):
        return Order(
            Precedence.LOGPROBS_FIRST,
            because,
            "the engine changed before the training did. Judge semantics and inference path before touching the "
            "objective. "
            f"{_reading(logprobs)}".strip(),
            "inspect the config of each run: rlaudit inspect CONFIG --from A --to B; "
            "compare the rollouts of the first steps: rlaudit compare ROLLOUTS",
        )
    if logprobs.from_the_start:
        return Order(
            Precedence.FROM_THE_START,
            because,
            "the engine or its weights changed, because no update came before that step. Judge semantics and inference "
            "path before touching the objective",
            "compare the rollouts of the first step: rlaudit compare ROLLOUTS; "
            "inspect the config of each run: rlaudit inspect CONFIG --from A --to B",
        )
    if _before(training, logprobs):
        return Order(
            Precedence.TRAINING_FIRST,
            because,
            "the policy moved first and its mismatch followed: a sharper or longer policy changes the mismatch "
            "without any change of the backend",
            "compare the objectives, data and seeds before suspecting the backend",
        )
    return Order(
        Precedence.UNDECIDED,
        because,
        "both may have begun together; these curves are too noisy to order them",
        "compare the rollouts of the first steps, where no update can be the cause: rlaudit compare ROLLOUTS",
    )


def _earliest(results: Sequence[CurveMetric], groups: Sequence[Group]) -> CurveMetric | None:
    of_groups = [
        result
        for result in results
        if result.group in groups
        # A clip fraction against the rollout's logprobs holds the mismatch itself: it cannot follow or precede it.
        and (result.group is Group.LOGPROBS or result.trainer_logprobs is None)
    ]
    return min(of_groups, key=lambda result: (result.detected_step or 0, result.onset_step or 0), default=None)


def _before(first: CurveMetric, second: CurveMetric) -> bool:
    """Return whether the first had separated before the second can have begun.

    A change that grows begins before the steps that show it most: by as many as these are, and by up to a tenth of the
    run for a ramp that a single step gives away. Before the first update nothing has begun to grow.
    """
    if first.detected_step is None or second.onset_step is None or second.detected_step is None:
        return False
    run = 0 if second.steps is None else second.steps.last - second.steps.first
    at_once = first.onset_step is not None and first.onset_step <= LAST_STEP_BEFORE_UPDATES
    earlier = 0 if at_once else max(second.detected_step - second.onset_step, run // 10)
    return first.detected_step < second.onset_step - earlier


def _when(result: CurveMetric) -> str:
    if result.from_the_start:
        return f"{result.name} differs at step {result.detected_step}, before any update"
    return (
        f"{result.name} began to differ at about step {result.onset_step}, and the test shows it at step "
        f"{result.detected_step}"
    )


def _reading(result: CurveMetric) -> str:
    """Return what weighs for or against the backend in this metric."""
    if result.onset_step is not None and result.onset_step <= LAST_STEP_BEFORE_UPDATES:
        return "The metric differs from the first step on, so no update can be the cause."
    if result.trainer_logprobs == Weights.CURRENT:
        return "The metric has the current policy in it, so staleness or larger updates may be the cause as well."
    return ""


def _switch_on(comparison: Comparison) -> str:
    frameworks = {
        name
        for result in comparison.results
        if result.framework
        for name in result.framework.replace(" ", "").split(",")
    }
    settings = [f"{name}: {how}" for name, how in SWITCH_ON.items() if name in frameworks]
    return "log one: " + ("; ".join(settings) or "the mean of |trainer - rollout| per token is enough")
