"""Layer 3 of an ablation: what is left for the RL objective to correct.

An ablation has fresh weights on both sides, so its staleness is zero and what it sees is backend mismatch alone.
"""

from collections.abc import Sequence

from rlaudit.diagnosis.clipping import ClippingWords, figures, judge_clipping
from rlaudit.diagnosis.consequence import NOTICEABLE_CLIPPING
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.distance_words import let_pass
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.diagnosis.measured import MeasuredArm
from rlaudit.layers import Layer, Verdict
from rlaudit.measurement.metric import Clip, ObjectiveSettings


def judge_objective(
    arm: MeasuredArm | None, earlier: Sequence[Judgement], settings: ObjectiveSettings, distance: Distance | None
) -> Judgement:
    """The objective layer, on the arm whose first two layers were judged. distance: what the second was judged by."""
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
        cause=f"backend mismatch {let_pass(distance)} is still clipped",
        because=_fitting_correction(arm, settings),
        next="switch the correction on, and watch the share of tokens it touches",
        refuted="clip fractions that stay where they are with the correction on",
    )
    return judge_clipping(arm.measurements, earlier, settings, evidence, words)


def _fitting_correction(arm: MeasuredArm, settings: ObjectiveSettings) -> str:
    clipped = {clip: arm.measurements[clip.value].value or 0.0 for clip in settings.clips}
    tokens, sequences = clipped.get(Clip.TOKENS, 0.0), clipped.get(Clip.SEQUENCES, 0.0)
    if sequences > NOTICEABLE_CLIPPING >= tokens:
        return (
            "sequences leave GSPO's range while tokens stay in PPO's: the range is narrower than the backend's noise; "
            "widen gspo_epsilon above it or weight sequences by a truncated importance ratio (TIS)"
        )
    if (arm.measurements["tail_fraction_2"].value or 0.0) > 0.0:
        return "a few tokens are far off: mask them (MIS, or IcePop's [0.5, 5]) rather than truncate all"
    return "many tokens are a little off: truncated importance sampling (TIS) with C=2 fits"
