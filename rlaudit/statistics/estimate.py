"""A ratio of sums over prompts, how sure it is, and what is left of that without any one prompt.

Covered: means, and differences of two means, of clustered tokens; few prompts (Student's distribution); tokens whose
variance the model itself states, which counts where the data show less of it; rounding that moves all tokens one way.
An estimate shows a difference only if it does so with every part of the prompts left out (`resample.py`). If it does
with some of them only, it leans, which rules nothing out either.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.statistics.resample import MOST_PARTS, REACH, ln_chance_apart, part_of, standard_score

# Some hundred figures of a comparison are held against a null: together they are wrong once in a hundred comparisons.
ALPHA = 1e-4
NONE: Floats = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value with its 95 % interval over prompts."""

    value: float
    low: float
    high: float
    # Logarithm of the two-sided p-value of the null.
    ln_p: float
    score: float = 0.0
    # The value and ln_p without each part of the prompts; none if nothing can be left out.
    left_K: Floats = field(default_factory=lambda: NONE)
    ln_p_left_K: Floats = field(default_factory=lambda: NONE)

    @property
    def p_value(self) -> float:
        """The two-sided p-value of the null."""
        return math.exp(self.ln_p)

    def shows(self, least: float, null: float = 0.0, alpha: float = ALPHA) -> bool:
        """Return whether it is surely and by more than `least` to one side of the null, with any part left out."""
        far_K = self._far(least, null, alpha)
        side = np.sign(self.value - null)
        return bool(len(far_K) > 1 and far_K.all() and (np.sign(self.left_K - null) == side).all())

    def leans(self, least: float, null: float = 0.0, alpha: float = ALPHA) -> bool:
        """Return whether it would show with some part left out, or with none, but not with each of them."""
        return bool(self._far(least, null, alpha).any()) and not self.shows(least, null, alpha)

    def _far(self, least: float, null: float, alpha: float) -> np.ndarray:
        """Return whether it is surely far from the null: of the whole, then without each part."""
        values = np.append(self.value, self.left_K)
        far: np.ndarray = np.append(self.ln_p, self.ln_p_left_K) < math.log(alpha)
        return far & (np.abs(values - null) > least)


def estimate_of(
    sums_PJ: Floats, null: float = 0.0, least_variance_P: Floats | None = None, resolution: float = 0.0
) -> Estimate:
    """Estimate a ratio.

    sums_PJ: (P, 2) numerator and denominator, or (P, 4) of two ratios, the second to be taken from the first.
    least_variance_P: (P,) variance of the first numerator that is certain even if the sample shows less.
    resolution: what rounding may move the value by.
    """
    value, error, units = _moments(sums_PJ, least_variance_P, resolution)
    score = standard_score(value, error, units, null)
    part_P = part_of(len(sums_PJ))
    left, ln_p_left = [], []
    for part in range(min(len(sums_PJ), MOST_PARTS) if len(sums_PJ) > 1 else 0):
        kept_P = part_P != part
        variance_P = None if least_variance_P is None else least_variance_P[kept_P]
        part_value, part_error, part_units = _moments(sums_PJ[kept_P], variance_P, resolution)
        left.append(part_value)
        ln_p_left.append(ln_chance_apart(standard_score(part_value, part_error, part_units, null), part_units))
    reach = REACH * error
    return Estimate(
        value=value,
        low=value - reach,
        high=value + reach,
        ln_p=ln_chance_apart(score, units),
        score=score,
        left_K=np.array(left),
        ln_p_left_K=np.array(ln_p_left),
    )


def _moments(sums_PJ: Floats, least_variance_P: Floats | None, resolution: float) -> tuple[float, float, int]:
    """Return the value, its standard error by the delta method, and how many prompts are behind it."""
    totals_J = sums_PJ.sum(axis=0)
    units = int((sums_PJ[:, 1] != 0).sum())
    value, apart_P = 0.0, np.zeros(len(sums_PJ))
    for sign, place in ((1.0, 0), (-1.0, 2)):
        if place >= len(totals_J) or totals_J[place + 1] == 0:
            continue
        ratio = float(totals_J[place] / totals_J[place + 1])
        value += sign * ratio
        apart_P = apart_P + sign * (sums_PJ[:, place] - ratio * sums_PJ[:, place + 1]) / totals_J[place + 1]
    # In units of the farthest: squares of what one absurd row leaves would overflow.
    farthest = float(np.abs(apart_P).max(initial=0.0))
    spread = math.sqrt(float(np.square(apart_P / farthest).sum())) if farthest > 0 else 0.0
    error = farthest * spread * math.sqrt(units / max(units - 1, 1))
    if least_variance_P is not None and totals_J[1] != 0:
        error = max(error, math.sqrt(float(least_variance_P.sum())) / float(totals_J[1]))
    return value, max(error, resolution), units


def figure(value: float | None, low: float | None, high: float | None) -> str:
    """Write value and interval with three digits, or that there is no value or no interval."""
    if value is None:
        return "undefined"
    if low is None or high is None:
        return f"{value:.3g} (no interval)"
    return f"{value:.3g} [{low:.3g}, {high:.3g}]"
