"""What was read of each version of an engine's weights, beside how far its tokens' logprobs lie apart.

Not covered: elements that were not read, and tensors without a counterpart.
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.recorder.recorded_weights import RecordedWeights


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
