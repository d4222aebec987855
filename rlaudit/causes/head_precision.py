"""A bfloat16 output head on one side rounds its logits to coarse steps, which the other side's do not have.

Covered: either side or both, from the top logprobs of each. The size of the steps says how much of the k2 the rounding
makes. Not covered: float16 heads, logprobs that were rounded when stored. A head in float32 on one side only can be
worse than on none: the remedy is the same head on both.
Source: `lattice.py`; NeMo-RL 3936, Fast-LLM 525, prime-rl 2438.
"""

import numpy as np
from numpy.typing import NDArray

from rlaudit.causes.attribution.cause import LEAST_SHARE, SURELY, Cause, NotTested, Outcome
from rlaudit.causes.attribution.part_signature import SHARE, k2_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.measurement.excess import CONSTANT

NAME = "head-precision"
# Of a lattice that FEWEST_DIFFERENCES of `lattice.py` hit by chance: below anything that Holm makes of it.
SURELY_ROUNDED = 1e-12
BOTH = 2
# Root mean square steps: the steps themselves are powers of two around it.
ONE_STEP = 2.0


def explained_share(evidence: TokenEvidence) -> float:
    """Return the share of the constant part of the mismatch that rounding accounts for."""
    assert evidence.excess is not None
    constant = evidence.excess.parts[CONSTANT]
    room2 = 0.5 * float((evidence.room_T**2).mean())
    level = constant.k2 / room2 if room2 > 0 else 0.0
    return evidence.head_rounding.explained(level) / level if level > 0 else 0.0


def one_step_off(evidence: TokenEvidence) -> NDArray[np.bool_]:
    """Return (T,) outliers that are one step of the lattice, if both sides lie on it.

    Bodies that nearly agree round alike nearly always, and differ by a whole step otherwise.
    """
    assert evidence.excess is not None
    if len(evidence.head_rounding.rounded_sides) < BOTH:
        return np.zeros(evidence.tokens, dtype=np.bool_)
    return evidence.excess.outlier_T & (np.abs(evidence.log_ratio_T) <= ONE_STEP * evidence.head_rounding.step)


def _share_one_step_off(evidence: TokenEvidence) -> float:
    """Return the share of the k2 of all outliers that lies one step off."""
    assert evidence.excess is not None
    squared_T = np.square(evidence.log_ratio_T)
    total = float(squared_T[evidence.excess.outlier_T].sum())
    return float(squared_T[one_step_off(evidence)].sum()) / total if total > 0 else 0.0


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the lattices, and the share of k2 that their steps account for."""
    excess = evidence.excess
    if excess is None:
        return NotTested("no mismatch to explain")
    rounding = evidence.head_rounding
    if not rounding.rounded_sides and rounding.unclear:
        return NotTested(f"the top logprobs do not show it: {rounding.unclear}")
    part = excess.parts[CONSTANT]
    of_constant = explained_share(evidence)
    of_outliers = _share_one_step_off(evidence)
    k2, k2_low, k2_high = (
        of_constant * dense + of_outliers * sparse
        for dense, sparse in zip(part.ends, excess.outliers.ends, strict=True)
    )
    share, low, high = (nats / excess.excess_k2 for nats in (k2, k2_low, k2_high))
    sides = " and ".join(rounding.rounded_sides) or "neither"
    return k2_signature(
        (k2, k2_low, k2_high),
        (share, low, high),
        p_value=SURELY_ROUNDED if rounding.rounded_sides else 1.0,
        large=share >= LEAST_SHARE and low >= SURELY,
        because=f"{sides} logits are rounded to bfloat16, in steps of about {rounding.step:.2g}. This rounding makes "
        f"{SHARE}",
    )


CAUSE = Cause(
    name=NAME,
    title="Precision of the output head",
    layer=Layer.INFERENCE_PATH,
    needs=("rollout_top_logprobs",),
    least=OF_A_VARIANCE,
    signature=signature,
    falsifier="k2 stays the same with a float32 head on both sides",
    next="compute the head in float32 on both sides (never on one) and compare. How: rlaudit explain "
    'fp32-head; vLLM 0.26.0 and later take hf_overrides={"head_dtype": "float32"}',
    factor="fp32-head",
)
