"""Layer 2 of a comparison, judged: by a distance (`distance.py`) under a clean meaning, and by shifted sequences."""

from dataclasses import dataclass
from enum import Enum

from rlaudit.attribution.attribute import ALPHA, Attribution
from rlaudit.attribution.cause import Outcome, Signature
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.rounded_updates import updates_rounded_away
from rlaudit.layers import Layer, Verdict
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.recorder.recorded_weights import RecordedWeights
from rlaudit.tokens.alignment import Misalignment

SHIFTS = frozenset({Misalignment.TOKEN_DROPPED.value, Misalignment.RETOKENISED.value})


class Decided(Enum):
    """What decided the inference path."""

    MEANING_FIRST = "a difference of meaning is in every figure"
    SHIFTED = "sequences that lost a token"
    ONE_SHIFT = "one such sequence, which decides nothing alone"
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
        decided, verdict = Decided.DISTANCE, distance.verdict
    if weights is None or verdict not in {Verdict.MATCH, Verdict.MISMATCH}:
        return InferencePath(decided, verdict, corrected)
    if weights.faults:
        # These tokens do not show it, and weights that are not what was sent match nothing.
        return InferencePath(decided, Verdict.INCONCLUSIVE if verdict is Verdict.MATCH else verdict, corrected)
    rounded = updates_rounded_away(weights, tokens, seed) if verdict is Verdict.MISMATCH else None
    return InferencePath(decided, verdict, corrected, rounded)
