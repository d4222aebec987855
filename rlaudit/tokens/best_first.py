"""Top lists with the best token first, as every test of them expects.

vLLM puts the sampled token before the others, and a log may keep them in the order of their ids.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.tokens.integrity import ROUNDING_ABOVE_ZERO
from rlaudit.tokens.token_batch import MOST_LISTED, TOPS, TokenBatch


def best_first(batch: TokenBatch) -> TokenBatch:
    """The batch with its lists (T, K) in order, padding at the end.

    Lists of unequal length stay as they are, and so do those of which only the beginning was read.
    """
    for side in ("rollout", "trainer"):
        ids, logprobs = TOPS[f"{side}_top_ids"], TOPS[f"{side}_top_logprobs"]
        ids_TK, logprobs_TK = getattr(batch, ids), getattr(batch, logprobs)
        unequal = ids_TK is not None and logprobs_TK is not None and ids_TK.shape != logprobs_TK.shape
        if logprobs_TK is None or unequal or logprobs_TK.shape[1] >= MOST_LISTED or not rising(logprobs_TK).any():
            continue
        order_TK = np.argsort(-logprobs_TK, axis=1, kind="stable")
        changed: dict[str, Any] = {logprobs: np.take_along_axis(logprobs_TK, order_TK, axis=1)}
        if ids_TK is not None:
            changed[ids] = np.take_along_axis(ids_TK, order_TK, axis=1)
        batch = replace(batch, **changed)
    return batch


def rising(logprobs_TK: Floats) -> NDArray[np.bool_]:
    """(T,) whether a list (T, K) has a better token behind a worse one."""
    # Both ends of a step of -inf to -inf are padding.
    with np.errstate(invalid="ignore"):
        return np.asarray((np.diff(logprobs_TK, axis=1) > ROUNDING_ABOVE_ZERO).any(axis=1))
