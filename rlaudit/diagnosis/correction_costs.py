"""What importance-sampling corrections would do to these tokens: how many they truncate or mask, and what they leave.

Covered, on the backend's ratio w = exp(trainer - rollout), at the bounds their authors publish:
    TIS        min(w, 2) per token (Yao et al., truncated importance sampling)
    MIS        tokens with w outside [1/2, 2] masked
    IcePop     tokens with w outside [0.5, 5] masked
    sequences  whole sequences masked whose geometric mean ratio leaves [0.99, 1.001] (Miles, slime)
Not covered: what a correction does to learning; a cost is the share of tokens it touches, not reward lost.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.tokens.pairs import LogprobPairs, importance_ratio

TIS_BOUND = 2.0
MIS_BOUNDS = (0.5, 2.0)
ICEPOP_BOUNDS = (0.5, 5.0)
SEQUENCE_BOUNDS = (0.99, 1.001)


@dataclass(frozen=True)
class CorrectionCost:
    """touched: share of tokens truncated or masked. k2_left: of the tokens that keep their weight, nats^2.

    weight_lost: mean ratio that truncation or masking takes away. ess: effective share of the tokens by the weights
    left.
    """

    name: str
    title: str
    touched: float
    weight_lost: float
    k2_left: float
    ess: float

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def correction_costs(pairs: LogprobPairs) -> tuple[CorrectionCost, ...]:
    """Each correction on the ratio of `pairs`."""
    weight_T = importance_ratio(pairs.log_ratio_T)
    lengths_S = np.maximum(pairs.sequence_lengths_S, 1)
    geometric_T = importance_ratio(pairs.sequence_log_ratio_S / lengths_S)[pairs.sequence_T]
    return (
        _cost("tis", f"token TIS, C={TIS_BOUND:g}", pairs, np.minimum(weight_T, TIS_BOUND), weight_T > TIS_BOUND),
        _mask("mis", f"token MIS in [{MIS_BOUNDS[0]:g}, {MIS_BOUNDS[1]:g}]", pairs, _beyond(weight_T, MIS_BOUNDS)),
        _mask(
            "icepop", f"IcePop in [{ICEPOP_BOUNDS[0]:g}, {ICEPOP_BOUNDS[1]:g}]", pairs, _beyond(weight_T, ICEPOP_BOUNDS)
        ),
        _mask(
            "sequence",
            f"sequences with a geometric mean in [{SEQUENCE_BOUNDS[0]:g}, {SEQUENCE_BOUNDS[1]:g}]",
            pairs,
            _beyond(geometric_T, SEQUENCE_BOUNDS),
        ),
    )


def _beyond(ratio: Floats, bounds: tuple[float, float]) -> NDArray[np.bool_]:
    return (ratio < bounds[0]) | (ratio > bounds[1])


def _mask(name: str, title: str, pairs: LogprobPairs, masked_T: NDArray[np.bool_]) -> CorrectionCost:
    return _cost(name, title, pairs, np.where(masked_T, 0.0, importance_ratio(pairs.log_ratio_T)), masked_T)


def _cost(
    name: str, title: str, pairs: LogprobPairs, corrected_T: Floats, touched_T: NDArray[np.bool_]
) -> CorrectionCost:
    before_T = importance_ratio(pairs.log_ratio_T)
    kept_T = ~touched_T
    k2_left = 0.5 * float(np.square(pairs.log_ratio_T[kept_T]).mean()) if kept_T.any() else 0.0
    squares = float(np.square(corrected_T).sum())
    return CorrectionCost(
        name=name,
        title=title,
        touched=float(touched_T.mean()),
        weight_lost=float((before_T - corrected_T).mean()),
        k2_left=k2_left,
        ess=float(corrected_T.sum()) ** 2 / (pairs.tokens * squares) if squares > 0 else 0.0,
    )
