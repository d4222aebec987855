"""A quantised key-value cache: every cached token adds error, so the mismatch grows with the context.

Covered: growth with the absolute position (or with the completion's, where prompt lengths are not known). Told from
weights by the early tokens, which stay near the floor.
Not covered: a rope or position configuration that differs, which also grows with position and needs a dtype ablation to
be told apart.
Source: research on FP8 rollouts (Jet-RL, NeMo-RL's gates for FP8 caches).
"""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.attribution.cause import Cause, NotTested, Outcome
from rlaudit.attribution.part_signature import LEAST_SHARE_BY_POSITION, part_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence

NAME = "quantised-kv"
# One block of vLLM's cache: over less context nothing grows.
FEWEST_POSITIONS = 16


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
    """Return the excess that grows with the context."""
    return part_signature(evidence, NAME, "grows with the length of the context", LEAST_SHARE_BY_POSITION)


CAUSE = Cause(
    name=NAME,
    title="Quantised key-value cache",
    layer=Layer.INFERENCE_PATH,
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="the same growth with kv_cache_dtype set to the model's own",
    next="sample once with kv_cache_dtype=auto; compare rope settings of both sides if it stays",
)
