"""The sentences about layer 3: does what is left leave the clip range, so that the objective has to correct it?

Judged only if the two layers before it pass: a correction that is switched on over a broken backend hides it. An
ablation has fresh weights on both sides, so its staleness is zero and what it sees is backend mismatch alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlaudit.diagnosis.consequence import NOTICEABLE_CLIPPING, Consequence, Measurements, consequence
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.inference_path import let_pass
from rlaudit.diagnosis.objective_split import ObjectiveSplit
from rlaudit.layers import Judgement, Layer, Verdict, judged_as
from rlaudit.statistics.estimate import figure
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings

# A comparison of logs needs no laboratory.
if TYPE_CHECKING:
    from rlaudit.diagnosis.measured import MeasuredArm

STATE = "state your clip range (--ppo-epsilon LOW HIGH or --gspo-epsilon LOW HIGH): this layer is judged by it"
# By the names that the figures of a report have.
SHOWN = {
    "ppo_clip_fraction": "PPO clipped", "gspo_clip_fraction": "GSPO clipped", "ess_token": "ess of tokens",
    "ess_sequence": "ess of sequences", "tail_fraction_2": "ratios above 2 or below 1/2",
}  # fmt: skip


@dataclass(frozen=True)
class _Words:
    """The sentences for each outcome."""

    match: str
    match_falsifier: str
    # What would settle an inconclusive verdict.
    settles: str
    # Of a mismatch, like the next three.
    cause: str
    because: str
    next: str
    mismatch_falsifier: str


def say_objective(
    measurements: Measurements,
    split: ObjectiveSplit | None,
    earlier: Sequence[Verdict],
    distance: Distance,
    verdict: Verdict,
) -> Judgement:
    """Judge a comparison, in sentences.

    split: of its sample, if there is one. earlier: verdicts of the two layers before. distance: what the inference path
    was judged by. verdict: of this layer, if both before it pass.
    """
    above = "both layers above match, yet more than 1 % of tokens or sequences leave the clip range"
    chosen = None if split is None else split.recommendation.cost
    words = _Words(
        match="less than 1 % of tokens and sequences leave the clip range, so no correction is needed",
        match_falsifier="clip fractions are above 1 % on another batch",
        settles="more sequences",
        cause=f"a mismatch {let_pass(distance)} still pushes tokens or sequences out of the clip range",
        because=above if split is None else f"{above}. {_as_sentence(split.recommendation.because)}",
        next="use a clip range wider than the mismatch, or fresher rollouts"
        if chosen is None
        else f"switch on {chosen.title}, and watch how many tokens it changes (here it would change "
        f"{100 * chosen.touched:.2f} %)",
        mismatch_falsifier="clip fractions stay as high with a correction switched on",
    )
    evidence = (_figures(measurements), *_split_lines(split))
    return _judgement(distance.consequence, verdict, earlier, evidence, words)


def say_objective_of_arm(
    arm: "MeasuredArm | None", earlier: Sequence[Verdict], settings: ObjectiveSettings, distance: Distance | None
) -> Judgement:
    """Judge an ablation, in sentences, by the arm whose first two layers were judged.

    distance: what the second layer was judged by.
    """
    if arm is None:
        return judged_as(Layer.OBJECTIVE, Verdict.NOT_TESTED, "the candidate has no figures")
    evidence = (
        f"{arm.name}: {_figures(arm.measurements)}",
        "staleness is 0: each arm is scored with the weights that it sampled with",
    )
    fits = fitting_correction(arm.measurements, settings)
    words = _Words(
        match="at lag 0 the backend's mismatch clips less than 1 % of tokens and sequences, so no correction is needed",
        match_falsifier="clip fractions are above 1 % at lag 0 in training",
        settles="more sequences: raise samples or prompts",
        cause=f"a mismatch of the backend {let_pass(distance)} still pushes tokens or sequences out of the clip range",
        because=fits.value,
        next=TO_DO[fits],
        mismatch_falsifier="clip fractions stay as high with the correction switched on",
    )
    felt = consequence(arm.measurements, settings)
    return _judgement(felt, felt.verdict, earlier, evidence, words)


def _judgement(
    felt: Consequence, verdict: Verdict, earlier: Sequence[Verdict], evidence: tuple[str, ...], words: _Words
) -> Judgement:
    open_layers = [layer.value for layer, before in zip(Layer, earlier, strict=False) if not before.passes]
    if open_layers:
        layers = "layer" if len(open_layers) == 1 else "layers"
        open_now = " and the ".join(open_layers)
        because = (
            f"the {open_now} {layers} must pass first, since a correction in the loss would only hide what is wrong"
        )
        step = "leave importance-sampling corrections off until the layers above pass"
        return judged_as(Layer.OBJECTIVE, Verdict.NOT_TESTED, because, evidence=evidence, following=step)
    if verdict is Verdict.MATCH:
        return judged_as(Layer.OBJECTIVE, verdict, words.match, evidence=evidence, falsifier=words.match_falsifier)
    if verdict is Verdict.NOTHING_FOUND:
        return judged_as(
            Layer.OBJECTIVE,
            verdict,
            _nothing_found(felt),
            evidence=evidence,
            falsifier=words.match_falsifier,
            following=STATE if felt.noticed else words.settles,
        )
    if verdict is Verdict.MISMATCH:
        return judged_as(
            Layer.OBJECTIVE,
            verdict,
            words.because,
            causes=(words.cause,),
            evidence=evidence,
            falsifier=words.mismatch_falsifier,
            following=words.next,
        )
    if any(share.low is None for share in felt.shares.values()):
        return judged_as(
            Layer.OBJECTIVE,
            verdict,
            "the clip fractions have no interval, so it is not decided whether they are above 1 %",
            evidence=evidence,
        )
    because = "the intervals of the clip fractions include 1 %, so it is not decided whether a correction is needed"
    return judged_as(Layer.OBJECTIVE, verdict, because, evidence=evidence, following=words.settles)


def _nothing_found(felt: Consequence) -> str:
    if felt.noticed:
        return (
            "rounding alone usually moves as many tokens as here out of PPO's and GSPO's clip ranges, and you did "
            "not state your clip range"
        )
    return (
        f"a mismatch that clips more than {100 * felt.most:.1f} % would show here, and none shows. So no correction "
        "is needed"
    )


def _as_sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}"


def _figures(measurements: Measurements) -> str:
    """Return the figures of this layer in one line."""
    shown = [(title, measurements[name]) for name, title in SHOWN.items()]
    figures = "; ".join(f"{name} = {figure(metric.value, metric.low, metric.high)}" for name, metric in shown)
    return f"shares of tokens or sequences: {figures}"


class Fitting(StrEnum):
    """Which correction fits what is clipped."""

    WIDEN = (
        "sequences leave GSPO's range, but tokens stay in PPO's, so GSPO's range is narrower than the backend's noise. "
        "Widen gspo_epsilon, or weight sequences by a truncated importance ratio (TIS)"
    )
    MASK = "a few tokens are far off: mask them (MIS, or IcePop's [0.5, 5]) rather than truncate all"
    TRUNCATE = "many tokens are a little off: truncated importance sampling (TIS) with C=2 fits"


TO_DO = {
    Fitting.WIDEN: "widen gspo_epsilon beyond the backend's noise, or truncate importance ratios of sequences (TIS)",
    Fitting.MASK: "mask tokens that are far off (MIS, or IcePop's [0.5, 5]), and watch how many tokens it changes",
    Fitting.TRUNCATE: "switch on truncated importance sampling (TIS) with C=2, and watch how many tokens it changes",
}


def fitting_correction(measurements: Measurements, settings: ObjectiveSettings) -> Fitting:
    """Return the correction that fits figures which the clip range feels."""
    clipped = {clip: measurements[clip.value].value or 0.0 for clip in settings.clips}
    tokens, sequences = clipped.get(Clip.TOKENS, 0.0), clipped.get(Clip.SEQUENCES, 0.0)
    if sequences > NOTICEABLE_CLIPPING >= tokens:
        return Fitting.WIDEN
    return Fitting.MASK if (measurements["tail_fraction_2"].value or 0.0) > 0.0 else Fitting.TRUNCATE


def _split_lines(split: ObjectiveSplit | None) -> list[str]:
    if split is None:
        return []
    lines = []
    if split.update_share is not None and split.backend_share is not None:
        lines.append(
            f"the policy update makes {100 * split.update_share:.0f} % of the mean squared log ratio, the backend "
            f"{100 * split.backend_share:.0f} %; the rest is the covariance of both"
        )
    if split.staleness is not None:
        lines.append(
            f"staleness makes {100 * split.staleness.value:.0f} % of the backend's k2: tokens from the newest weights "
            "(lag 0) have so much less k2 than all tokens together"
        )
    touched = "; ".join(f"{100 * cost.touched:.2f} % with {cost.title}" for cost in split.corrections)
    if touched:
        lines.append(f"corrections would change these shares of the tokens: {touched}")
    return [*lines, *split.not_told]
