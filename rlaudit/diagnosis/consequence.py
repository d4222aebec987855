"""What the objective would feel of a mismatch alone: the share that it pushes out of the user's clip range.

The share is measured if events can be counted. If none was seen, mean squares bound it as well, which tell far more
than the count of prompts does. Clipping starts at a lag of 0, so every share of it is taken from learning.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.contrast import judge
from rlaudit.statistics.measurement.measure import Measurement
from rlaudit.statistics.measurement.metric import Clip, ObjectiveSettings

# Share of tokens (PPO) or sequences (GSPO) clipped above which the objective feels it. The trade: a smaller share takes
# more than the 300 prompts to rule out that this one does, a larger one would be seen in any clip-rate curve.
NOTICEABLE_CLIPPING = 0.01
# Of sequences, if the user did not state that the objective clips them: bfloat16 alone moves a few short ones that far.
CLIPPED_IF_NOT_STATED = 0.1

Measurements = Mapping[str, Measurement]


# Half a mean square of what each range clips: of a token's log ratio, of a sequence's mean.
MEAN_SQUARES = {Clip.TOKENS: "k2", Clip.SEQUENCES: "sequence_k2"}


@dataclass(frozen=True)
class Consequence:
    """What the objective would feel."""

    # MATCH if each range of the objective surely clips less than NOTICEABLE_CLIPPING, MISMATCH if a range surely clips
    # more.
    verdict: Verdict
    # As measured.
    shares: Mapping[Clip, Measurement]
    # As the mean squares allow.
    at_most: Mapping[Clip, float]

    @property
    def noticed(self) -> bool:
        """Whether some range surely clips more than NOTICEABLE_CLIPPING."""
        return any(share.low is not None and share.low > NOTICEABLE_CLIPPING for share in self.shares.values())

    @property
    def most(self) -> float:
        """The largest share that some range may clip; 1 if an interval is missing or unreliable."""
        ends = [
            1.0 if share.high is None or not share.reliable else min(share.high, self.at_most[clip])
            for clip, share in self.shares.items()
        ]
        return max(ends, default=1.0)


def consequence(measurements: Measurements, settings: ObjectiveSettings) -> Consequence:
    """Judge the consequence. measurements: with the clip fractions at `settings` and their MEAN_SQUARES."""
    shares = {clip: measurements[clip.value] for clip in settings.clips}
    at_most = most_clipped(measurements, settings)
    verdicts = [_verdict(share, at_most[clip]) for clip, share in shares.items()]
    if Verdict.MISMATCH in verdicts and not any(noticed(clip, share, settings) for clip, share in shares.items()):
        verdicts = [Verdict.INCONCLUSIVE]
    if Verdict.MISMATCH in verdicts:
        verdict = Verdict.MISMATCH
    else:
        verdict = Verdict.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else Verdict.MATCH
    return Consequence(verdict, shares, at_most)


def noticed(clip: Clip, share: Measurement, settings: ObjectiveSettings) -> bool:
    """Return whether the share is surely noticeable to an objective that has this range, or has it for all we know."""
    assumed = clip is Clip.SEQUENCES and not settings.stated
    least = CLIPPED_IF_NOT_STATED if assumed else NOTICEABLE_CLIPPING
    return share.low is not None and share.low > least


def _verdict(share: Measurement, at_most: float) -> Verdict:
    if share.low is None or share.high is None:
        return Verdict.INCONCLUSIVE
    return judge(share.low, min(share.high, at_most), NOTICEABLE_CLIPPING, reliable=share.reliable)


def most_clipped(measurements: Measurements, settings: ObjectiveSettings) -> Mapping[Clip, float]:
    """Return upper bounds of the clip fractions, by Chebyshev: a share p needs a mean square of p epsilon^2."""
    highs = {clip: measurements[MEAN_SQUARES[clip]].high for clip in settings.clips}
    return {clip: math.inf if high is None else 2.0 * high / settings.reach(clip) ** 2 for clip, high in highs.items()}


def unfelt_k2(measurements: Measurements, settings: ObjectiveSettings, shortest: int) -> float:
    """Return the k2 (nats^2) up to which no shape of differences clips NOTICEABLE_CLIPPING: `most_clipped` inverted.

    A sequence's mean d has at most the mean d^2 of its tokens; the shortest sequence (in tokens) bounds how much
    lighter than others its tokens weigh.
    """
    k2 = measurements["k2"]
    uneven = max(1.0, k2.tokens / max(k2.sequences, 1) / max(shortest, 1))
    weights = {Clip.TOKENS: 1.0, Clip.SEQUENCES: uneven}
    return min(0.5 * NOTICEABLE_CLIPPING * settings.reach(clip) ** 2 / weights[clip] for clip in settings.clips)
