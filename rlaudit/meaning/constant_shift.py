"""Is the log ratio one and the same number at every token? No sampler, filter, temperature or rounding does that.

A filter that is not replayed shifts by the log of the mass it kept, which differs from token to token; a temperature
shifts sure tokens less than unsure ones; rounding has both signs. One number for all is a normaliser or an offset of
one side: a vocabulary that was padded, a logprob of another base, a constant that was added.
"""

import numpy as np

from rlaudit.attribution.token_evidence import TokenEvidence
from rlaudit.measurement.metric import FLOAT32_RESOLUTION

# Relative: logprobs that were stored with three digits still count as one number.
ALIKE = 1e-3


def constant_shift(evidence: TokenEvidence) -> float | None:
    """trainer - rollout in nats, where it is not 0 and all tokens have it, those of one prompt at most excepted."""
    if not evidence.tokens:
        return None
    shift = float(np.median(evidence.log_ratio_T))
    apart_T = np.abs(evidence.log_ratio_T - shift) > max(FLOAT32_RESOLUTION, ALIKE * abs(shift))
    elsewhere = len(np.unique(evidence.cluster_T[apart_T]))
    if abs(shift) <= FLOAT32_RESOLUTION or elsewhere > min(1, evidence.clusters - 1):
        return None
    return shift
