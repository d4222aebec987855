"""Tokens at the edges of key-value blocks or prefill chunks differ more, and would not with other edges.

Covered: the first token after a multiple of 16, 32, 64, 128, 256 or 512 tokens of context. Needs prompt lengths, since
edges are counted from the prompt's first token.
Not covered: chunks whose edges depend on what else was scheduled.
Source: NeMo-RL 2100 (Mamba and chunked prefill), verl 3595.
"""

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome
from rlaudit.causes.attribution.part_signature import part_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence

NAME = "chunk-boundary"
PERIODS = (16, 64, 256)
# Tokens at an edge: the mean of 30 squares is known to a quarter.
FEWEST_EDGES = 30


def basis(evidence: TokenEvidence) -> Floats | NotTested:
    """Return (T, periods) whether the token follows an edge. Edges of 64 are edges of 16 too, so coarser ones show."""
    context_T = np.asarray(evidence.columns["absolute_position"], dtype=np.int64)
    edges = [context_T % period == 0 for period in PERIODS]
    often = [edge_T.astype(np.float64) for edge_T in edges if edge_T.sum() >= FEWEST_EDGES]
    if not often:
        return NotTested(f"fewer than {FEWEST_EDGES} tokens lie at the edge of a block")
    return np.stack(often, axis=1)


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 at edges."""
    return part_signature(evidence, NAME, f"is at the edges of blocks of {PERIODS[0]} tokens or multiples of it")


CAUSE = Cause(
    name=NAME,
    title="Edges of blocks or prefill chunks",
    layer=Layer.INFERENCE_PATH,
    needs=("absolute_position",),
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="the same tokens differ as much with another block size, or with chunked prefill off",
    next="sample once with chunked prefill off, or with a larger max_num_batched_tokens",
    factor="chunked-prefill",
)
