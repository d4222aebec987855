"""Layer 3: what is left for the RL objective to correct.

Judged only when the two layers before it match: an importance-sampling correction that is switched on over a broken
backend hides it. An ablation has fresh weights on both sides, so its staleness is zero and what it sees is backend
mismatch alone.
"""

import math
from collections.abc import Mapping, Sequence

from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.layers import Layer, Verdict
from rlaudit.mismatch.evidence import Measurement
from rlaudit.mismatch.metric import ObjectiveSettings

# Share of tokens (PPO) or sequences (GSPO) clipped by the backend alone above which the objective feels it.
NOTICEABLE_CLIPPING = 0.01
CLIP_METRICS = ("ppo_clip_fraction", "gspo_clip_fraction")
SHOWN = (*CLIP_METRICS, "ess_token", "ess_sequence", "tail_fraction_2")


def judge_objective(arm: MeasuredArm | None, earlier: Sequence[Judgement], settings: ObjectiveSettings) -> Judgement:
    """The objective layer, on the arm whose first two layers were judged."""
    if arm is None:
        return Judgement(Layer.OBJECTIVE, Verdict.NOT_TESTED, None, "no arm has figures")
    evidence = (
        f"{arm.name}: "
        + "; ".join(f"{name} {figure(found.value, found.low, found.high)}" for name, found in _shown(arm).items()),
        "staleness: 0, every arm scores the weights it sampled from",
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
    clipped = {name: arm.measurements[name] for name in CLIP_METRICS}
    if any(found.low is None or found.high is None for found in clipped.values()):
        return Judgement(Layer.OBJECTIVE, Verdict.INCONCLUSIVE, None, "clip fractions have no interval", evidence)
    at_most = most_clipped(arm, settings)
    if all(min(found.high or 0.0, at_most[name]) <= NOTICEABLE_CLIPPING for name, found in clipped.items()):
        return Judgement(
            Layer.OBJECTIVE,
            Verdict.MATCH,
            None,
            "at lag 0 the backend clips less than 1 % of tokens and sequences: it needs no correction",
            evidence,
            falsifier="clip fractions above 1 % at lag 0 in training",
        )
    if all((found.low or 0.0) <= NOTICEABLE_CLIPPING for found in clipped.values()):
        return Judgement(
            Layer.OBJECTIVE,
            Verdict.INCONCLUSIVE,
            None,
            "the intervals of the clip fractions reach over 1 %",
            evidence,
            next="more sequences: raise samples or prompts",
        )
    return Judgement(
        Layer.OBJECTIVE,
        Verdict.MISMATCH,
        "backend mismatch within the equivalence margin is still clipped",
        _fitting_correction(arm),
        evidence,
        falsifier="clip fractions that stay where they are with the correction on",
        next="switch the correction on, and watch the share of tokens it touches",
    )


def most_clipped(arm: MeasuredArm, settings: ObjectiveSettings) -> Mapping[str, float]:
    """Upper bounds of the clip fractions from k2, by Chebyshev: clipping a share p needs a mean d^2 of p epsilon^2.

    Where nothing was clipped, this tells far more than the count of prompts does. A sequence's mean d has at most the
    mean d^2 of its tokens; the shortest sequence bounds how much lighter than others its tokens weigh.
    """
    k2 = arm.measurements["k2"].high
    mean_square = math.inf if k2 is None else 2.0 * k2
    lengths = arm.pairs.sequence_lengths_S
    uneven = float(lengths.mean() / max(int(lengths.min()), 1))
    return {
        "ppo_clip_fraction": mean_square / _reach(settings.ppo_epsilon_low, settings.ppo_epsilon_high) ** 2,
        "gspo_clip_fraction": mean_square * uneven / _reach(settings.gspo_epsilon_low, settings.gspo_epsilon_high) ** 2,
    }


def _reach(low: float, high: float) -> float:
    """The smallest |d| that is clipped."""
    return min(math.log1p(high), -math.log1p(-low) if low < 1 else math.inf)


def _fitting_correction(arm: MeasuredArm) -> str:
    tokens, sequences = (arm.measurements[name].value or 0.0 for name in CLIP_METRICS)
    if sequences > NOTICEABLE_CLIPPING >= tokens:
        return (
            "sequences leave GSPO's range while tokens stay in PPO's: the range is narrower than the backend's noise; "
            "widen gspo_epsilon above it or weight sequences by a truncated importance ratio (TIS)"
        )
    if (arm.measurements["tail_fraction_2"].value or 0.0) > 0.0:
        return "a few tokens are far off: mask them (MIS, or IcePop's [0.5, 5]) rather than truncate all"
    return "many tokens are a little off: truncated importance sampling (TIS) with C=2 fits"


def _shown(arm: MeasuredArm) -> Mapping[str, Measurement]:
    return {name: arm.measurements[name] for name in SHOWN}
