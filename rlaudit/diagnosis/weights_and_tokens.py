"""What was read of an engine's weights, beside what its tokens show: a cause of mismatch, or a reason not to acquit.

Covered: weights that are not what updates sent, which is read from memory and needs no statistics; and changes that the
engine's dtype rounds away, which are named only if the trainer is known to compute in a wider dtype and the mismatch
follows, by version, how far the engine's weights are from those that were sent.
Not covered: rounding that is as large after each update. It adds noise, and `body_precision.py` knows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlaudit.attribution.attribute import ALPHA
from rlaudit.attribution.cause import NotTested, Outcome
from rlaudit.attribution.part_signature import part_signature
from rlaudit.diagnosis.judgement import Judgement
from rlaudit.layers import Verdict
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.measurement.excess import fit_excess
from rlaudit.recorder.recorded_weights import RecordedWeights

NOT_AS_SENT = "weights-not-as-sent"
ROUNDED_AWAY = "updates-rounded-away"
WIDE, NARROW = "torch.float32", frozenset({"torch.bfloat16", "torch.float16"})
# Of the elements that changed: below this an update arrives for the most part.
LEAST_ROUNDED = 0.5
# How many times as far the last weights are from those that were sent as the nearest ones: from there on it varies.
LEAST_GROWTH = 1.5


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
    found = judgement
    if judgement.verdict is Verdict.MISMATCH and not weights.faults:
        rounded = rounded_away(weights, evidence, seed)
        line = rounded.reason if isinstance(rounded, NotTested) else rounded.because
        if isinstance(rounded, NotTested) or not (rounded.large and rounded.p_value < ALPHA):
            return replace(found, evidence=(*found.evidence, f"not named: {ROUNDED_AWAY} ({line})"))
        return replace(
            found,
            causes=(*found.causes, ROUNDED_AWAY),
            because=f"{found.because}; {ROUNDED_AWAY}: {line}",
            falsifier=found.falsifier if found.causes else "the same growth with an engine in float32",
            next=found.next if found.causes else "run the same steps with dtype=float32 in the engine",
        )
    return _as_sent(found, weights.faults) if weights.faults else found


def _as_sent(judgement: Judgement, faults: Sequence[str]) -> Judgement:
    """The judgement where the weights are not what updates sent: a mismatch has that cause, and nothing matches."""
    said = "; ".join(f"the engine's weights {fault}" for fault in faults)
    evidence = (*(f"{NOT_AS_SENT}: read from the engine's memory: {fault}" for fault in faults), *judgement.evidence)
    confirm = "after one update, compare a logprob of the same prompt in the engine with the trainer's own"
    if judgement.verdict is Verdict.MISMATCH:
        return replace(
            judgement,
            causes=(NOT_AS_SENT, *judgement.causes),
            because=f"{said}; {judgement.because}",
            evidence=evidence,
            falsifier="a reading of the weights that holds what was sent",
            next=confirm,
        )
    if judgement.verdict is Verdict.MATCH:
        because = f"{said}: these tokens do not show it; {judgement.because}"
        return replace(judgement, verdict=Verdict.INCONCLUSIVE, because=because, evidence=evidence, next=confirm)
    return replace(judgement, because=f"{judgement.because}; {said}", evidence=evidence)


def rounded_away(weights: RecordedWeights, evidence: TokenEvidence, seed: int) -> Outcome:
    """Return the part of the mismatch that follows how far the engine's weights are from those that were sent."""
    changed, rounded = (sum(getattr(one, name) for one in weights.versions) for name in ("changed", "rounded_away"))
    if rounded < LEAST_ROUNDED * changed or not changed:
        return NotTested(f"{rounded} of {changed} elements that changed were rounded to the value they had")
    if weights.trainer_dtypes != {WIDE} or not weights.dtypes & NARROW:
        return NotTested("the trainer is not known to compute in a wider dtype than the engine")
    apart = {one.version: one.apart for one in weights.versions if one.apart is not None}
    if len(apart) < 2 or max(apart.values()) < LEAST_GROWTH * min(apart.values()):
        return NotTested("the engine's weights are about as far from those that were sent after each update")
    versions = evidence.columns.get("rollout_version")
    if versions is None:
        return NotTested("from which weights tokens were sampled is unknown")
    known = np.array(sorted(apart))
    square_V = np.square([apart[version] for version in known.tolist()])
    version_T = np.asarray(versions, dtype=np.float64)
    trainer_T = np.asarray(evidence.columns.get("trainer_version", version_T), dtype=np.float64)
    # A trainer with other weights is apart for that reason.
    kept_T = np.isin(version_T, known) & (trainer_T == version_T)
    if len(np.unique(version_T[kept_T])) < 2:
        return NotTested("the tokens that can be told are of one version of the weights")
    square_T = square_V[np.searchsorted(known, version_T[kept_T])]
    growth_T = (square_T - square_T.min()) / max(float(np.ptp(square_T)), np.finfo(np.float64).tiny)
    excess = fit_excess(
        evidence.log_ratio_T[kept_T],
        evidence.room_T[kept_T],
        evidence.cluster_T[kept_T],
        {ROUNDED_AWAY: growth_T[:, None]},
        evidence.floor_k2 or 0.0,
        seed,
    )
    share = f"{rounded / changed:.1%} of the elements that changed are rounded to the value they had, and"
    because = f"{share} the mismatch follows how far the engine's weights are from those that were sent"
    return part_signature(evidence.with_excess(excess), ROUNDED_AWAY, because)
