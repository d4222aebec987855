"""Layer 3 of an ablation: what is left for the RL objective to correct.

An ablation has fresh weights on both sides, so its staleness is zero and what it sees is backend mismatch alone.
"""

from collections.abc import Sequence

from rlaudit.diagnosis.clipping import CLIP_METRICS, NOTICEABLE_CLIPPING, ClippingWords, figures, judge_clipping
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.layers import Layer, Verdict
from rlaudit.mismatch.metric import ObjectiveSettings


def judge_objective(arm: MeasuredArm | None, earlier: Sequence[Judgement], settings: ObjectiveSettings) -> Judgement:
    """The objective layer, on the arm whose first two layers were judged."""
    if arm is None:
        return Judgement(Layer.OBJECTIVE, Verdict.NOT_TESTED, None, "no arm has figures")
    evidence = (
        f"{arm.name}: {figures(arm.measurements)}",
        "staleness: 0, every arm scores the weights it sampled from",
    )
    words = ClippingWords(
        match="at lag 0 the backend clips less than 1 % of tokens and sequences: it needs no correction",
        unrefuted="clip fractions above 1 % at lag 0 in training",
        more="more sequences: raise samples or prompts",
        cause="backend mismatch within the equivalence margin is still clipped",
        because=_fitting_correction(arm),
        next="switch the correction on, and watch the share of tokens it touches",
        refuted="clip fractions that stay where they are with the correction on",
    )
    shortest = int(arm.pairs.sequence_lengths_S.min())
    return judge_clipping(arm.measurements, earlier, settings, shortest, evidence, words)


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
