"""The engine reuses key-value blocks of older weights, so logprobs are off most right behind a cached prefix.

Covered: sequences with cached tokens, compared with sequences without any. If a recording marks the cached tokens that
older weights computed (stale_tokens), the sequences behind such tokens, compared with all others. Stale weights would
show in uncached sequences as well.
Not covered: data in which everything or nothing was cached, or whose weights never changed. A cached prefix adds noise
even without an update (other kernels, other chunks). To tell this noise from stale weights, record two versions of the
weights.
Source: NeMo-RL 4018, prime-rl 1650, AReaL 827; vLLM leaves the reset to the caller (46125).
"""

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome
from rlaudit.causes.attribution.part_signature import SHARE, part_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence

NAME = "stale-prefix-kv"
# Tokens: a factor of four apart, so that sums of them come close to any fading between.
FADES_OVER = (2.0, 8.0, 32.0)


def basis(evidence: TokenEvidence) -> Floats | NotTested:
    """Return (T, 4): cached at all, and fading over two, over a few and over some tens of tokens."""
    if never_updated(evidence):
        return NotTested("the weights never changed (version 0): nothing in the cache can be stale")
    cached_T, of_weights = _reused(evidence)
    if cached_T.all() or not cached_T.any():
        all_or_none = "every" if cached_T.all() else "no"
        return NotTested(f"{all_or_none} sequence has cached tokens{of_weights}, so there is nothing to compare with")
    fading = [np.exp(-evidence.position_T / tokens) for tokens in FADES_OVER]
    return np.stack([cached_T, *(cached_T * fade for fade in fading)], axis=1).astype(np.float64)


def never_updated(evidence: TokenEvidence) -> bool:
    """Return whether no cache can be stale: the weights are the first. Others may follow an update before the log."""
    version_T = evidence.columns.get("rollout_version")
    return version_T is not None and not np.any(version_T)


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 that only sequences with cached tokens show."""
    cached_T, of_weights = _reused(evidence)
    share = float(np.mean(cached_T))
    because = (
        f"tokens after a cached prefix{of_weights} ({100 * share:.0f} % of all tokens) are farther off than the "
        f"other tokens; this difference alone is {SHARE}"
    )
    return part_signature(evidence, NAME, because)


def _reused(evidence: TokenEvidence) -> tuple[NDArray[np.bool_], str]:
    """Return (T,) whether the prefix may be stale, and of which weights it is.

    stale_tokens is not used if it is known only in part.
    """
    stale_T = evidence.columns.get("stale_tokens")
    if stale_T is None or np.isnan(stale_T).any():
        return np.asarray(evidence.columns["cached_tokens"]) > 0, ""
    return np.asarray(stale_T) > 0, " of older weights"


CAUSE = Cause(
    name=NAME,
    title="Prefix cache kept across a weight update",
    layer=Layer.INFERENCE_PATH,
    needs=("cached_tokens",),
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="the mismatch stays after reset_prefix_cache, or sequences without cached tokens show it too",
    next="reset the prefix cache (or salt it) at every weight update and compare again",
    factor="prefix-caching",
)
