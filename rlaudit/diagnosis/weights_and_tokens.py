"""What was read of each version of an engine's weights, beside how far its tokens' logprobs lie apart.

Not covered: elements that were not read, and tensors without a counterpart.
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.recording.recorded_weights import RecordedWeights


@dataclass(frozen=True)
class VersionGap:
    """A version of the weights: what rounding hid of its update, and how far its tokens' logprobs lie apart."""

    version: int
    # How many have a finite log ratio.
    tokens: int
    # Of these, in nats and nats^2; None if there are none.
    mean_abs_log_ratio: float | None
    k2: float | None
    # As in `WeightsOfVersion`.
    changed: int
    rounded_away: int
    apart: float | None


def version_gaps(evidence: TokenEvidence, weights: RecordedWeights | None) -> tuple[VersionGap, ...]:
    """Return the gap of each version of the weights that was read, by the tokens of the evidence."""
    version_T = evidence.columns.get("rollout_version")
    gaps = []
    for version in () if weights is None else weights.versions:
        log_ratio_T = evidence.log_ratio_T[slice(0) if version_T is None else version_T == version.version]
        size = float(np.mean(np.abs(log_ratio_T))) if len(log_ratio_T) else None
        k2 = 0.5 * float(np.mean(log_ratio_T**2)) if len(log_ratio_T) else None
        arrival = (version.changed, version.rounded_away, version.apart)
        gaps.append(VersionGap(version.version, len(log_ratio_T), size, k2, *arrival))
    return tuple(gaps)
