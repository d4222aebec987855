"""How much of the mismatch the rounding of a bfloat16 head explains, from the lattices of the top logprobs alone.

A bfloat16 logit in [2^e, 2^(e+1)) is rounded to a multiple of u = 2^(e-7), an error of variance u^2 / 12. One head
rounded: the variance of a logit's difference is s^2 + u^2 / 12 with s the noise of the bodies. Both rounded:
s^2 + (u^2 / 6)(1 - c), c = (6 / pi^2) sum over k of k^-2 exp(-2 pi^2 k^2 s^2 / u^2), because bodies that agree round
alike; so rounding both is better than rounding one when s < 0.123 u.
"""

import math
from dataclasses import dataclass

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.statistics.measurement.lattice import HeadPrecision, LatticeEvidence, lattice_hit_rate

# Binades of the step: of logits in [2, 4) and in [64, 128).
FINEST, COARSEST = -6, -1
# Of a step; logprobs in float32 miss a multiple by less, and float32 logits hit within it twice in a thousand.
HIT = 1e-3
# Logits this close are mostly of one binade, and where logits compete the logprob feels their rounding.
NEAR_NATS = 2.0
CLOSE_NATS = 4.0


@dataclass(frozen=True)
class HeadRounding:
    """The lattices of both sides."""

    # None without top logprobs.
    rollout: LatticeEvidence | None
    trainer: LatticeEvidence | None
    # The step u of the rounded logits, nats at T.
    step: float

    @property
    def rounded_sides(self) -> tuple[str, ...]:
        """The sides whose logits were bfloat16."""
        sides = {"rollout": self.rollout, "trainer": self.trainer}
        return tuple(side for side, seen in sides.items() if seen is not None and seen.verdict is HeadPrecision.BF16)

    @property
    def unclear(self) -> str | None:
        """Why a side with top logprobs is neither on the lattice nor off it; None if no side is unclear."""
        for evidence in (self.rollout, self.trainer):
            if evidence is not None and evidence.verdict is HeadPrecision.UNKNOWN:
                return evidence.because
        return None

    def explained(self, total: float) -> float:
        """Return the variance of a logit's difference that is due to rounding, of `total` in all."""
        if not self.rounded_sides or self.step <= 0:
            return 0.0
        if len(self.rounded_sides) == 1:
            return min(self.step**2 / 12.0, total)
        low, high = 0.0, math.sqrt(max(total, 0.0))
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if middle**2 + _both(middle, self.step) < total else (low, middle)
        return max(0.0, total - low**2)


def _both(noise: float, step: float) -> float:
    shared = sum(math.exp(-2.0 * (math.pi * k * noise / step) ** 2) / k**2 for k in range(1, 60))
    return step**2 / 6.0 * (1.0 - 6.0 / math.pi**2 * shared)


def head_rounding(
    rollout_top_TK: Floats | None, trainer_top_TK: Floats | None, rollout_temperature: float, trainer_temperature: float
) -> HeadRounding:
    """Judge both sides. Temperatures: what each side's logits were divided by before the log softmax."""
    rollout_top_TK, trainer_top_TK = _close(rollout_top_TK), _close(trainer_top_TK)
    rollout = lattice_hit_rate(rollout_top_TK, rollout_temperature) if rollout_top_TK is not None else None
    trainer = lattice_hit_rate(trainer_top_TK, trainer_temperature) if trainer_top_TK is not None else None
    steps = [
        _step(np.asarray(top_TK, dtype=np.float64), evidence.temperature) / temperature
        for top_TK, evidence, temperature in (
            (rollout_top_TK, rollout, rollout_temperature),
            (trainer_top_TK, trainer, trainer_temperature),
        )
        if evidence is not None and evidence.verdict is HeadPrecision.BF16 and top_TK is not None
    ]
    return HeadRounding(rollout, trainer, max(steps, default=0.0))


def _close(top_TK: Floats | None) -> Floats | None:
    """Keep what lies within CLOSE_NATS of the best: logits far below it may be small, and bfloat16 is fine there."""
    if top_TK is None:
        return None
    values_TK = np.asarray(top_TK, dtype=np.float64)
    return np.where(values_TK > values_TK.max(axis=1, keepdims=True) - CLOSE_NATS, values_TK, -np.inf)


def _step(top_TK: Floats, temperature: float) -> float:
    """Return the root mean square of the steps u = 2^f of the two best logits, if at most NEAR_NATS apart.

    A difference of two multiples of 2^f is a multiple of 2^e with probability 2^(f-e) for e >= f, and surely for
    e <= f. So of the share F(e) of differences that are multiples of 2^e, 2 F(e+1) - F(e) is the weight of f > e.
    """
    finite_T = np.isfinite(top_TK[:, :2]).all(axis=1)
    differences = temperature * np.abs(top_TK[finite_T, 0] - top_TK[finite_T, 1])
    differences = differences[differences < NEAR_NATS]
    if not differences.size:
        return 0.0
    powers = np.arange(FINEST, COARSEST + 1)
    multiples = differences[:, None] / np.exp2(powers)
    shares = (np.abs(multiples - np.rint(multiples)) < HIT).mean(axis=0)
    at_least = np.minimum.accumulate(np.clip(np.concatenate([[1.0], 2.0 * shares[1:] - shares[:-1]]), 0.0, 1.0))
    weights = at_least - np.append(at_least[1:], 0.0)
    return float(np.sqrt((weights * np.exp2(2.0 * powers)).sum()))
