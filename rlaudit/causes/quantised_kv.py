"""A quantised key-value cache, in which every cached token adds error, so the mismatch grows with the context.

Covered: growth with the absolute position (or with the completion's, if prompt lengths are not known). Typical tokens
grow in prompt after prompt, unlike noise of a few contexts. No token id shares the errors, unlike other weights and
rope settings. Tokens seen before err to both sides, unlike under a penalty.
Not covered: a rope or position configuration that differs so little that no token id shows it.
Source: research on FP8 rollouts (Jet-RL, NeMo-RL's gates for FP8 caches).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Rival, Signature
from rlaudit.causes.attribution.part_signature import LEAST_SHARE_BY_POSITION, part_signature
from rlaudit.causes.attribution.rival_patterns import errs_by_token, loud, typical_apart
from rlaudit.causes.attribution.semantic_signatures import PENALTY
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.log_statistics import seen_shift
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.estimate import ALPHA

NAME = "quantised-kv"
# One block of vLLM's cache: over less context nothing grows.
FEWEST_POSITIONS = 16
# Logarithm of how much larger a typical square is in long contexts than in short ones. Noise in proportion to logits of
# contexts that grow sharper: -0.2 to 0.4; quantised caches at five times the floor: 0.8 to 1.6 (simulated policies and
# the generators of the self-test, November 2026). That it grows at all the excess shows already.
LEAST_GROWTH, GROWS_SURELY = 0.4, 0.05
# Logarithm of how much smaller 1 - p is in long contexts, from which on rounding in proportion to the logits grows as a
# quantised cache does: all four of 420 tables with nothing but such rounding that were called one lay beyond 0.9.
MOST_SHARPENING, SUREST = 0.7, 1e-4


def context(evidence: TokenEvidence) -> Floats:
    """Return (T,) the tokens before each; of the completion alone if prompt lengths are not known."""
    return np.asarray(evidence.columns.get("absolute_position", evidence.position_T), dtype=np.float64)


def basis(evidence: TokenEvidence) -> Floats | NotTested:
    """Return (T, 2): growing linearly and quadratically from the shortest context on."""
    before_T = context(evidence)
    before_T = before_T - before_T.min()
    if before_T.max() < FEWEST_POSITIONS:
        return NotTested(f"contexts differ by less than {FEWEST_POSITIONS} tokens")
    grown_T = before_T / before_T.max()
    return np.stack([grown_T, np.square(grown_T)], axis=1)


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 that grows with the context."""
    outcome = part_signature(evidence, NAME, "grows with the length of the context", LEAST_SHARE_BY_POSITION)
    if isinstance(outcome, Signature) and outcome.large and not _grows(evidence):
        return replace(outcome, large=False, because=f"typical tokens do not grow; {outcome.because}")
    return outcome


def _grows(evidence: TokenEvidence) -> bool:
    """Return whether typical errors are surely larger in the longest quarter of contexts than in the shortest."""
    assert evidence.excess is not None
    calm_T = ~loud(evidence.excess, but=NAME)
    short_T, long_T = _quarters(evidence)
    return typical_apart(evidence, calm_T & long_T, calm_T & short_T).shows(LEAST_GROWTH, alpha=GROWS_SURELY)


def _quarters(evidence: TokenEvidence) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (T,) whether the token is in the quarter of the shortest contexts, and of the longest."""
    before_T = context(evidence)
    short, long = np.quantile(before_T, (0.25, 0.75))
    return before_T <= short, before_T >= long


def _sharpens(evidence: TokenEvidence) -> bool:
    """Return whether tokens are much surer in long contexts: their logits are larger, and so is what rounds them."""
    logs_T = np.log(np.maximum(evidence.room_T, SUREST))
    short_T, long_T = _quarters(evidence)
    return float(logs_T[long_T].mean()) < float(logs_T[short_T].mean()) - MOST_SHARPENING


def _shifts_seen_tokens(evidence: TokenEvidence) -> bool:
    """Return whether tokens that the sequence holds already err to one side."""
    seen = seen_shift(evidence)
    return seen is not None and seen.shift.p_value < ALPHA


RIVALS = (
    Rival(
        PENALTY,
        lambda evidence: _shifts_seen_tokens(evidence) or errs_by_token(evidence),
        "write out every penalty (0, repetition_penalty=1) and no logit_bias, and sample again",
    ),
    Rival(
        "other weights or rope settings",
        errs_by_token,
        "compare weight checksums and rope settings of both sides",
    ),
    Rival(
        "rounding of logits that grow",
        _sharpens,
        "sample once with kv_cache_dtype=auto: rounding stays, the error of a quantised cache goes",
    ),
)

CAUSE = Cause(
    name=NAME,
    title="Quantised key-value cache",
    layer=Layer.INFERENCE_PATH,
    # Without ids neither a penalty nor other weights are ruled out.
    needs=("token_id",),
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="the mismatch grows as much with kv_cache_dtype set to the model's own dtype",
    next="sample once with kv_cache_dtype=auto; compare rope settings of both sides if the mismatch stays",
    rivals=RIVALS,
)
