"""What was read of an engine's weights, beside what its tokens show: a cause of mismatch, or a reason not to acquit.

Covered: weights that are not what updates sent, which is read from memory and needs no statistics; and updates that the
engine's dtype rounds away (`rounded_updates.py`), where they are what was sent.
Not covered: elements that were not read, and tensors without a counterpart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlaudit.attribution.attribute import ALPHA
from rlaudit.attribution.cause import NotTested
from rlaudit.diagnosis import rounded_updates
from rlaudit.diagnosis.rounded_updates import updates_rounded_away
from rlaudit.layers import Judgement, Verdict
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.recorder.recorded_weights import RecordedWeights

NOT_AS_SENT = "weights-not-as-sent"


@dataclass(frozen=True)
class VersionGap:
    """One version of the weights: what rounding hid of its update, and how far its tokens' logprobs lie apart.

    tokens: with a finite log ratio. mean_abs_log_ratio, k2: of these, in nats and nats^2; None without one. The others
    are those of `WeightsOfVersion`.
    """

    version: int
    tokens: int
    mean_abs_log_ratio: float | None
    k2: float | None
    changed: int
    rounded_away: int
    apart: float | None


def version_gaps(evidence: TokenEvidence, weights: RecordedWeights | None) -> tuple[VersionGap, ...]:
    """Return what is known of each version of the weights that was read. Its tokens are those of the evidence."""
    version_T = evidence.columns.get("rollout_version")
    found = []
    for one in () if weights is None else weights.versions:
        own_T = evidence.log_ratio_T[version_T == one.version] if version_T is not None else evidence.log_ratio_T[:0]
        size, k2 = (float(np.mean(np.abs(own_T))), 0.5 * float(np.mean(own_T**2))) if len(own_T) else (None, None)
        found.append(VersionGap(one.version, len(own_T), size, k2, one.changed, one.rounded_away, one.apart))
    return tuple(found)


def with_weights(
    judgement: Judgement, weights: RecordedWeights | None, evidence: TokenEvidence, seed: int
) -> Judgement:
    """Return the judgement of the inference path with what was read of the weights."""
    if weights is None:
        return judgement
    if weights.faults:
        return _as_sent(judgement, weights.faults)
    if judgement.verdict is Verdict.MISMATCH:
        rounded = updates_rounded_away(weights, evidence, seed)
        line = rounded.reason if isinstance(rounded, NotTested) else rounded.because
        if isinstance(rounded, NotTested) or not (rounded.large and rounded.p_value < ALPHA):
            return replace(judgement, evidence=(*judgement.evidence, f"not named: {rounded_updates.NAME} ({line})"))
        causes = (*judgement.causes, rounded_updates.NAME)
        return replace(
            judgement,
            cause=" and ".join(causes),
            causes=causes,
            because=f"{judgement.because}; {rounded_updates.NAME}: {line}",
            falsifier=judgement.falsifier if judgement.causes else rounded_updates.FALSIFIER,
            next=judgement.next if judgement.causes else rounded_updates.NEXT,
        )
    return judgement


def _as_sent(judgement: Judgement, faults: Sequence[str]) -> Judgement:
    """Judge weights that are not what updates sent: a mismatch has that cause, and nothing matches."""
    sentence = "; ".join(f"the engine's weights {fault}" for fault in faults)
    evidence = (*(f"{NOT_AS_SENT}: read from the engine's memory: {fault}" for fault in faults), *judgement.evidence)
    confirm = "after one update, compare a logprob of the same prompt in the engine with the trainer's own"
    if judgement.verdict is Verdict.MISMATCH:
        causes = (NOT_AS_SENT, *judgement.causes)
        return replace(
            judgement,
            cause=" and ".join(causes),
            causes=causes,
            because=f"{sentence}; {judgement.because}",
            evidence=evidence,
            falsifier="a reading of the weights that holds what was sent",
            next=confirm,
        )
    if judgement.verdict is Verdict.MATCH:
        because = f"{sentence}: these tokens do not show it; {judgement.because}"
        return replace(judgement, verdict=Verdict.INCONCLUSIVE, because=because, evidence=evidence, next=confirm)
    return replace(judgement, because=f"{judgement.because}; {sentence}", evidence=evidence)
