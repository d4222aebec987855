"""Layer 2 of a comparison, judged: by a distance (`distance.py`) under a clean meaning, and by shifted sequences."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from rlaudit.causes.attribution.attribute import ALPHA, Attribution
from rlaudit.causes.attribution.cause import Outcome, Signature
from rlaudit.diagnosis.consequence import NOTICEABLE_CLIPPING
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.rounded_updates import updates_rounded_away
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.recording.recorded_weights import RecordedWeights
from rlaudit.tokens.alignment import Misalignment

SHIFTS = frozenset({Misalignment.TOKEN_DROPPED.value, Misalignment.RETOKENISED.value})

# Tokens with less room than that are too sure to show noise; fewer than so many others show no median.
LEAST_ROOM, FEWEST_UNSURE = 0.05, 64
# The standard deviation of a normal variable over the median of its size.
NORMAL_BY_MEDIAN = 1.4826
# The trade: noise that is louder in some contexts has up to nine times the square that its median says (simulated
# engines); a banned token, a wrong expert or an end of sequence that is biased, 20 times and more.
TIMES_USUAL = 10.0
# Of tokens or sequences: 59 prompts of which none is clipped rule it out.
LARGEST_CLIPPING = 0.05


class Decided(Enum):
    """What decided the inference path."""

    MEANING_FIRST = "a difference of meaning is in every figure"
    SHIFTED = "sequences that lost a token"
    ONE_SHIFT = "one such sequence, which decides nothing alone"
    ORDINARY = "no farther than a healthy engine, evenly over the tokens"
    NONE_SEEN = "nothing was clipped where it is not known whether too much is"
    USUAL = "farther than most healthy engines, and not than all"
    DISTANCE = "how far the engine is from the trainer"


@dataclass(frozen=True)
class InferencePath:
    """The inference path as judged."""

    decided: Decided
    verdict: Verdict
    # Whether the attribution is of what the right meaning leaves over.
    corrected: bool
    # Whether updates that the engine's dtype rounds away make a mismatch; None if there is none, or the weights were
    # not read.
    rounded: Outcome | None = None

    @property
    def names_rounding(self) -> bool:
        """Whether updates that were rounded away are a cause."""
        return isinstance(self.rounded, Signature) and self.rounded.large and self.rounded.p_value < ALPHA


def judge_path(
    distance: Distance,
    attribution: Attribution,
    semantic: Verdict,
    tokens: TokenEvidence,
    weights: RecordedWeights | None,
    seed: int,
) -> InferencePath:
    """Judge a comparison. semantic: the verdict of the layer before. weights: of the engine, as far as read."""
    corrected = tokens.meaning is not None
    if semantic is Verdict.MISMATCH:
        decided, verdict = Decided.MEANING_FIRST, Verdict.NOT_TESTED
    elif any(cause.name in SHIFTS for cause in attribution.named_of(Layer.INFERENCE_PATH)):
        decided, verdict = Decided.SHIFTED, Verdict.MISMATCH
    elif SHIFTS & set(attribution.leaning) and distance.verdict is Verdict.MATCH:
        decided, verdict = Decided.ONE_SHIFT, Verdict.INCONCLUSIVE
    else:
        decided, verdict = _by_distance(distance, attribution, tokens)
    if weights is None or not (verdict.passes or verdict is Verdict.MISMATCH):
        return InferencePath(decided, verdict, corrected)
    if weights.faults:
        # These tokens do not show it, and weights that are not what was sent match nothing.
        return InferencePath(decided, Verdict.INCONCLUSIVE if verdict.passes else verdict, corrected)
    rounded = updates_rounded_away(weights, tokens, seed) if verdict is Verdict.MISMATCH else None
    return InferencePath(decided, verdict, corrected, rounded)


def _by_distance(distance: Distance, attribution: Attribution, tokens: TokenEvidence) -> tuple[Decided, Verdict]:
    """Judge by the yardstick; without a better one, what rounding does to a healthy engine is no mismatch.

    A cause that shows, or would with some prompts left out, is not rounding; nor are a few tokens that make it all. A
    clip range that the user stated is a better one.
    """
    path = Layer.INFERENCE_PATH
    if distance.verdict is Verdict.MATCH or attribution.named_of(path) or attribution.leaning_of(path):
        return Decided.DISTANCE, distance.verdict
    if distance.usual_at_most and not distance.settings.stated and even(tokens):
        if distance.ordinary:
            return Decided.ORDINARY, Verdict.NOTHING_FOUND
        if distance.verdict is Verdict.MISMATCH:
            return Decided.USUAL, Verdict.INCONCLUSIVE
    if distance.usual_at_most and _few_clipped(distance) and _none_seen(distance):
        return Decided.NONE_SEEN, Verdict.NOTHING_FOUND
    return Decided.DISTANCE, distance.verdict


def even(tokens: TokenEvidence) -> bool:
    """Return whether most tokens are off as far as all are on average, for their probability, as rounding makes it."""
    unsure_T = tokens.room_T > LEAST_ROOM
    if unsure_T.sum() < FEWEST_UNSURE:
        return False
    # Noise on logits moves a logprob in proportion to 1 - p.
    noise = NORMAL_BY_MEDIAN * float(np.median(np.abs(tokens.log_ratio_T[unsure_T]) / tokens.room_T[unsure_T]))
    usual_k2 = 0.5 * noise**2 * float(np.mean(np.square(tokens.room_T)))
    return tokens.k2 <= TIMES_USUAL * usual_k2


def consequence_verdict(distance: Distance, path: InferencePath) -> Verdict:
    """Judge the objective behind a path that passes: what it would feel of the distance.

    What rounding does to a healthy engine is no mismatch of an objective that was not stated.
    """
    nothing = _few_clipped(distance) or path.decided is Decided.ORDINARY
    return Verdict.NOTHING_FOUND if nothing else distance.consequence.verdict


def _few_clipped(distance: Distance) -> bool:
    """Return whether no share is noticed and all are surely small: it takes 300 prompts to call that a match."""
    felt = distance.consequence
    return felt.verdict is Verdict.INCONCLUSIVE and not felt.noticed and felt.most <= LARGEST_CLIPPING


def _none_seen(distance: Distance) -> bool:
    """Return whether no token or sequence was clipped, but of shares that are surely below what is noticeable."""
    shares = distance.consequence.shares.values()
    return all((share.high or 0.0) <= NOTICEABLE_CLIPPING or not share.value for share in shares)
