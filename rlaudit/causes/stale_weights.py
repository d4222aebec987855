"""Rollouts sampled with older weights than the trainer's: the mismatch grows with the version lag.

Covered: a lag per token or per sequence, if trainer and rollout count versions alike. Tokens at lag 0 differ only by
rounding; low precision would show in these tokens, too. Sequences without cached tokens show the mismatch as well,
unlike with a stale prefix cache.
Not covered: versions that are recorded but not the ones in memory (a failed weight update); that looks like wrong
weights.
Source: version lag as in PipelineRL and AReaL; NeMo-RL 4018, where a stale prefix cache looked like it.
"""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome
from rlaudit.causes.attribution.part_signature import part_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence

NAME = "stale-weights"


def basis(evidence: TokenEvidence) -> Floats | NotTested:
    """Return (T, 3): lagging at all, the lag (independent updates) and its square (updates in one direction)."""
    lag_T = np.maximum(np.asarray(evidence.columns["version_lag"], dtype=np.float64), 0.0)
    if not np.ptp(lag_T) > 0:
        return NotTested(f"every token has version lag {lag_T[0]:g}, so lags cannot be compared")
    lag_T = lag_T / lag_T.max()
    return np.stack([lag_T > 0, lag_T, np.square(lag_T)], axis=1).astype(np.float64)


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 that grows with the lag."""
    lag_T = evidence.columns["version_lag"]
    return part_signature(
        evidence, NAME, f"is a part that grows with the version lag ({lag_T.min():g} to {lag_T.max():g})"
    )


CAUSE = Cause(
    name=NAME,
    title="Rollout weights older than the trainer's",
    layer=Layer.INFERENCE_PATH,
    needs=("version_lag",),
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="tokens of lag 0 differ as much, or the mismatch stays when rollouts wait for the update",
    next="compare tokens of lag 0 only, or sample once with updates paused",
)
