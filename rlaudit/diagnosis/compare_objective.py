"""The objective layer of a comparison: what a clipping objective would do with the mismatch that is left."""

import math
from collections.abc import Mapping

from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.diagnosis.objective_split import ObjectiveSplit
from rlaudit.layers import Layer, Verdict
from rlaudit.mismatch.evidence import Measurement
from rlaudit.mismatch.metric import ObjectiveSettings

# Share of tokens (PPO) or sequences (GSPO) clipped above which the objective feels it.
NOTICEABLE_CLIPPING = 0.01
CLIP_METRICS = ("ppo_clip_fraction", "gspo_clip_fraction")
SHOWN = (*CLIP_METRICS, "ess_token", "ess_sequence", "tail_fraction_2")


def judge_objective(
    measurements: Mapping[str, Measurement],
    split: ObjectiveSplit | None,
    earlier: tuple[Judgement, Judgement],
    settings: ObjectiveSettings,
    shortest: int,
) -> Judgement:
    """The layer's verdict; only when both layers before it match.

    split: of the evidence, where there is any. shortest: tokens of the shortest sequence.
    """
    evidence = (
        "; ".join(
            f"{name} {figure(measurements[name].value, measurements[name].low, measurements[name].high)}"
            for name in SHOWN
        ),
        *_split_lines(split),
    )
    open_layers = [judgement.layer.value for judgement in earlier if judgement.verdict is not Verdict.MATCH]
    if open_layers:
        return Judgement(
            Layer.OBJECTIVE,
            Verdict.NOT_TESTED,
            None,
            f"the {' and the '.join(open_layers)} layer comes first: a correction over it would hide it",
            evidence,
            next="switch on no importance-sampling correction before the layers above match",
        )
    clipped = [measurements[name] for name in CLIP_METRICS]
    at_most = most_clipped(measurements["k2"], settings, shortest)
    if all(
        found.high is not None and min(found.high, at_most[name]) <= NOTICEABLE_CLIPPING
        for name, found in zip(CLIP_METRICS, clipped, strict=True)
    ):
        return Judgement(
            Layer.OBJECTIVE,
            Verdict.MATCH,
            None,
            "less than 1 % of tokens and sequences leave the clip range: no correction is needed",
            evidence,
            "clip fractions above 1 % on another batch",
        )
    if all((found.low or 0.0) <= NOTICEABLE_CLIPPING for found in clipped):
        return Judgement(
            Layer.OBJECTIVE,
            Verdict.INCONCLUSIVE,
            None,
            "the intervals of the clip fractions reach over 1 %",
            evidence,
            next="more sequences",
        )
    return Judgement(
        Layer.OBJECTIVE,
        Verdict.MISMATCH,
        "mismatch within the equivalence margin is still clipped",
        "more than 1 % of tokens or sequences leave the clip range although both layers before it match"
        + (f": {split.recommendation.because}" if split is not None else ""),
        evidence,
        "clip fractions that stay where they are with a correction on",
        _next(split),
    )


def most_clipped(k2: Measurement, settings: ObjectiveSettings, shortest: int) -> Mapping[str, float]:
    """Upper bounds of the clip fractions from k2, by Chebyshev: clipping a share p needs a mean d^2 of p epsilon^2.

    Where nothing was clipped this tells far more than the count of prompts does. A sequence's mean d has at most the
    mean d^2 of its tokens; the shortest sequence bounds how much lighter than others its tokens weigh.
    """
    mean_square = math.inf if k2.high is None else 2.0 * k2.high
    uneven = k2.tokens / k2.sequences / max(shortest, 1)
    return {
        "ppo_clip_fraction": mean_square / _reach(settings.ppo_epsilon_low, settings.ppo_epsilon_high) ** 2,
        "gspo_clip_fraction": mean_square * uneven / _reach(settings.gspo_epsilon_low, settings.gspo_epsilon_high) ** 2,
    }


def _reach(low: float, high: float) -> float:
    """The smallest |d| that is clipped."""
    return min(math.log1p(high), -math.log1p(-low) if low < 1 else math.inf)


def _next(split: ObjectiveSplit | None) -> str:
    chosen = None if split is None else split.recommendation.cost
    if chosen is None:
        return "a clip range wider than the mismatch, or fresher rollouts"
    return f"switch on {chosen.title} and watch the share of tokens it touches ({chosen.touched:.2%} of these)"


def _split_lines(split: ObjectiveSplit | None) -> list[str]:
    if split is None:
        return []
    lines = []
    if split.update_share is not None and split.backend_share is not None:
        lines.append(
            f"of the mean squared log ratio the policy update makes {split.update_share:.0%} and the backend "
            f"{split.backend_share:.0%} (what is missing to 100 % is in their covariance)"
        )
    if split.staleness is not None:
        lines.append(f"staleness: {split.staleness.value:.0%} of the backend's k2 is absent from tokens of lag 0")
    touched = ", ".join(f"{cost.title} {cost.touched:.2%}" for cost in split.corrections)
    if touched:
        lines.append(f"share of tokens that a correction would touch: {touched}")
    return [*lines, *split.not_told]
