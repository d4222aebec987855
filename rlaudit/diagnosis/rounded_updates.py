"""Updates that the engine's dtype rounds away: the rollout stays behind the trainer, further with every step.

Covered: a trainer that is known to compute in a wider dtype than the engine holds its weights in. A step of learning
rate 1e-5 moves a weight of 0.1 by less than half of what bfloat16 tells apart, so that most weights stay where they
were, and what the trainer has learnt is in its own copy alone. Named as a cause only if most elements that changed were
rounded to the value they had, and if the mismatch follows, by version of the weights, how far those that the engine
holds are from those that were sent. The sizes of log ratios are taken in units of what the same noise does at each
token (`measurement/excess.py`), so that a policy that becomes sharper is no growth.
Not covered: rounding that is as large after each update, as with a checkpoint in float32. It adds noise, and
`body-precision` knows it. A trainer under autocast rounds its weights as the engine does.
"""

import numpy as np

from rlaudit.causes.attribution.cause import NotTested, Outcome
from rlaudit.causes.attribution.part_signature import part_signature
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.recording.recorded_weights import RecordedWeights
from rlaudit.statistics.measurement.excess import fit_excess

NAME = "updates-rounded-away"
WIDE, NARROW = "torch.float32", frozenset({"torch.bfloat16", "torch.float16"})
# Of the elements that changed: below this an update arrives for the most part.
LEAST_ROUNDED = 0.5
# How many times as far the last weights are from those that were sent as the nearest ones: from there on it varies.
LEAST_GROWTH = 1.5
FALSIFIER = "it grows as much with an engine in float32"
NEXT = "run the same steps with dtype=float32 in the engine"


def updates_rounded_away(weights: RecordedWeights, evidence: TokenEvidence, seed: int) -> Outcome:
    """Return the part of the mismatch that follows how far the engine's weights are from those that were sent."""
    changed = sum(version.changed for version in weights.versions)
    rounded = sum(version.rounded_away for version in weights.versions)
    if rounded < LEAST_ROUNDED * changed or not changed:
        return NotTested(f"{rounded} of {changed} elements that changed were rounded to the value they had")
    if weights.trainer_dtypes != {WIDE} or not weights.dtypes & NARROW:
        return NotTested("the trainer is not known to compute in a wider dtype than the engine")
    apart = {version.version: version.apart for version in weights.versions if version.apart is not None}
    if len(apart) < 2 or max(apart.values()) < LEAST_GROWTH * min(apart.values()):
        return NotTested("the engine's weights are about as far from those that were sent after each update")
    versions = evidence.columns.get("rollout_version")
    if versions is None:
        return NotTested("from which weights tokens were sampled is unknown")
    version_V = np.array(sorted(apart))
    square_V = np.square([apart[version] for version in version_V.tolist()])
    version_T = np.asarray(versions, dtype=np.float64)
    trainer_T = np.asarray(evidence.columns.get("trainer_version", version_T), dtype=np.float64)
    # A trainer with other weights is apart for that reason.
    kept_T = np.isin(version_T, version_V) & (trainer_T == version_T)
    if len(np.unique(version_T[kept_T])) < 2:
        return NotTested("the tokens that can be told are of one version of the weights")
    square_T = square_V[np.searchsorted(version_V, version_T[kept_T])]
    growth_T = (square_T - square_T.min()) / max(float(np.ptp(square_T)), np.finfo(np.float64).tiny)
    excess = fit_excess(
        evidence.log_ratio_T[kept_T],
        evidence.room_T[kept_T],
        evidence.cluster_T[kept_T],
        {NAME: growth_T[:, None]},
        evidence.floor_k2 or 0.0,
        seed,
    )
    share = f"{100 * (rounded / changed):.1f} % of the elements that changed are rounded to the value they had, and"
    because = f"{share} the mismatch follows how far the engine's weights are from those that were sent"
    return part_signature(evidence.with_excess(excess), NAME, because)
