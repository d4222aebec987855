"""Layer 3, the verdict that ablations and comparisons share: does the mismatch that is left leave the clip range?

Judged only when the two layers before it match: a correction that is switched on over a broken backend hides it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlaudit.diagnosis.judgement import Judgement, figure
from rlaudit.layers import Layer, Verdict
from rlaudit.mismatch.evidence import Measurement
from rlaudit.mismatch.metric import ObjectiveSettings

# Share of tokens (PPO) or sequences (GSPO) clipped above which the objective feels it.
NOTICEABLE_CLIPPING = 0.01
CLIP_METRICS = ("ppo_clip_fraction", "gspo_clip_fraction")
SHOWN = (*CLIP_METRICS, "ess_token", "ess_sequence", "tail_fraction_2")
Measurements = Mapping[str, Measurement]


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
    shortest: int,
    evidence: tuple[str, ...],
    words: ClippingWords,
) -> Judgement:
    """The objective layer. shortest: tokens of the shortest sequence."""
    open_layers = [judgement.layer.value for judgement in earlier if judgement.verdict is not Verdict.MATCH]
    if open_layers:
        because = f"the {' and the '.join(open_layers)} layer comes first: a correction over it would hide it"
        step = "switch on no importance-sampling correction before the layers above match"
        return Judgement(Layer.OBJECTIVE, Verdict.NOT_TESTED, None, because, evidence, next=step)
    ends = {name: (measurements[name].low, measurements[name].high) for name in CLIP_METRICS}
    known = {name: (low, high) for name, (low, high) in ends.items() if low is not None and high is not None}
    if len(known) < len(ends):
        return Judgement(Layer.OBJECTIVE, Verdict.INCONCLUSIVE, None, "clip fractions have no interval", evidence)
    at_most = most_clipped(measurements["k2"], settings, shortest)
    if all(min(high, at_most[name]) <= NOTICEABLE_CLIPPING for name, (_, high) in known.items()):
        return Judgement(Layer.OBJECTIVE, Verdict.MATCH, None, words.match, evidence, words.unrefuted)
    if all(low <= NOTICEABLE_CLIPPING for low, _ in known.values()):
        because = "the intervals of the clip fractions reach over 1 %"
        return Judgement(Layer.OBJECTIVE, Verdict.INCONCLUSIVE, None, because, evidence, next=words.more)
    return Judgement(Layer.OBJECTIVE, Verdict.MISMATCH, words.cause, words.because, evidence, words.refuted, words.next)


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
