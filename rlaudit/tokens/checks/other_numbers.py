"""Columns of logprobs that hold another number of the same tokens: probabilities, surprisals (-log p), log(p + c).

They show by their sign, and by the other side, whose logprobs they are once turned back.
Not covered: log(p + c) with a c below a millionth, which is above 0 nowhere, and another base (`causes/other_base.py`).
"""

from collections.abc import Iterator

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.tokens.first_look import SIDES, Check, Finding
from rlaudit.tokens.integrity import ROUNDING_ABOVE_ZERO
from rlaudit.tokens.token_batch import TokenBatch

FEWEST = 64
# Of the tokens: log(p + c) is above 0 for sure ones only.
LEAST_POSITIVE = 0.01
# Nats between a column that is turned back and the other side, at most tokens.
NEAR = 0.2
# log(p + c) of a sure token; a larger c would be another number.
MOST_ADDED = 0.1


def look(batch: TokenBatch) -> Iterator[Finding]:
    """Yield the sides that hold another number."""
    for column, field in SIDES.items():
        other = next(name for name in SIDES.values() if name != field)
        ours_T, others_T = getattr(batch, field), getattr(batch, other)
        known_T = batch.counts_T & np.isfinite(ours_T)
        ours_T, others_T = ours_T[known_T], others_T[known_T]
        if len(ours_T) < FEWEST or (ours_T > ROUNDING_ABOVE_ZERO).mean() < LEAST_POSITIVE:
            continue
        finding = _turned_back(column, ours_T, others_T)
        if finding is not None:
            yield finding


def _turned_back(column: str, ours_T: Floats, others_T: Floats) -> Finding | None:
    highest, lowest = float(ours_T.max()), float(ours_T.min())
    instead = f"{column} is not used, because it holds {{}}. Log the natural logarithm of the probability"
    if lowest >= 0.0 and highest <= 1.0 + ROUNDING_ABOVE_ZERO and _near(np.log(np.maximum(ours_T, 1e-30)), others_T):
        return Finding(instead.format("probabilities, from 0 to 1"), unused=(column,))
    if lowest >= -ROUNDING_ABOVE_ZERO and _near(-ours_T, others_T):
        return Finding(instead.format("-log p, from 0 upwards"), unused=(column,))
    added = float(np.expm1(highest))
    if added <= MOST_ADDED and lowest >= np.log(added) - NEAR and _near(ours_T, np.log(np.exp(others_T) + added)):
        return Finding(
            f"{column} lies between {lowest:.4g} and {highest:.2g}, above 0 for sure tokens and never lower for rare "
            f"ones, so it is log(p + {added:.1g}). Log the logarithm of the probability alone",
            capped=(column,),
            placed=True,
        )
    return None


def _near(logprobs_T: Floats, others_T: Floats) -> bool:
    """Return whether most tokens have the other side's logprob; True if it has none."""
    known_T = np.isfinite(others_T)
    return not known_T.any() or bool(np.median(np.abs(logprobs_T - others_T)[known_T]) < NEAR)


CHECK = Check("other-numbers", look)
