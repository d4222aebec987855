"""Layer 3, the verdict that ablations and comparisons share: does the mismatch that is left leave the clip range?

Judged only when the two layers before it match: a correction that is switched on over a broken backend hides it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.diagnosis.consequence import Measurements, consequence
from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.layers import Layer, Verdict
from rlaudit.measurement.metric import Clip, ObjectiveSettings

SHOWN = (*(clip.value for clip in Clip), "ess_token", "ess_sequence", "tail_fraction_2")


@dataclass(frozen=True)
class ClippingWords:
    """What is said of each outcome. unrefuted: what would refute a match. more: what would settle the inconclusive.

    cause, because, next: of a mismatch; refuted: what would refute that.
    """

    match: str
    unrefuted: str
    more: str
    cause: str
    because: str
    next: str
    refuted: str


def figures(measurements: Measurements) -> str:
    """The figures of this layer in one line."""
    found = {name: measurements[name] for name in SHOWN}
    return "; ".join(f"{name} {figure(one.value, one.low, one.high)}" for name, one in found.items())


def judge_clipping(
    measurements: Measurements,
    earlier: Sequence[Judgement],
    settings: ObjectiveSettings,
    evidence: tuple[str, ...],
    words: ClippingWords,
) -> Judgement:
    """The objective layer."""
    open_layers = [judgement.layer.value for judgement in earlier if judgement.verdict is not Verdict.MATCH]
    if open_layers:
        because = f"the {' and the '.join(open_layers)} layer comes first: a correction over it would hide it"
        step = "switch on no importance-sampling correction before the layers above match"
        return Judgement(Layer.OBJECTIVE, Verdict.NOT_TESTED, None, because, evidence, next=step)
    felt = consequence(measurements, settings)
    if felt.verdict is Verdict.MATCH:
        return Judgement(Layer.OBJECTIVE, Verdict.MATCH, None, words.match, evidence, words.unrefuted)
    if felt.verdict is Verdict.MISMATCH:
        return Judgement(Layer.OBJECTIVE, felt.verdict, words.cause, words.because, evidence, words.refuted, words.next)
    if any(share.low is None for share in felt.shares.values()):
        return Judgement(Layer.OBJECTIVE, felt.verdict, None, "clip fractions have no interval", evidence)
    because = "the intervals of the clip fractions reach over 1 %"
    return Judgement(Layer.OBJECTIVE, felt.verdict, None, because, evidence, next=words.more)
