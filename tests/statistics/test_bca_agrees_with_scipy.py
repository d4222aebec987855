"""scipy's BCa interval and ours are the same, but for how far each reaches, and for what a left-out prompt adds."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import bootstrap

from rlaudit.statistics.heavy_tail import normal_reach
from rlaudit.statistics.interval import IntervalMethod, interval
from rlaudit.statistics.resample import LEVEL, cluster_weights, holding, ratio, replicate_sums, sums_left

REPLICATES = 2000
RNG = np.random.default_rng
# (P, 2) sums and counts of prompts: of one size and of several, symmetric, skewed either way, and shares.
TABLES = {
    "normal": np.stack([RNG(0).standard_normal(60) + 3.0, np.ones(60)], axis=1),
    "skewed up": np.stack([RNG(1).lognormal(size=40), np.ones(40)], axis=1),
    "skewed down": np.stack([-RNG(2).lognormal(size=40), np.ones(40)], axis=1),
    "sizes differ": np.stack([RNG(3).gamma(2.0, size=30), RNG(4).integers(1, 9, 30)], axis=1),
    "shares": np.stack([RNG(5).binomial(20, 0.05, 50), np.full(50, 20)], axis=1).astype(float),
    "few prompts": np.stack([RNG(6).lognormal(size=12), RNG(7).integers(1, 4, 12)], axis=1),
}


def of_sums(sums: np.ndarray, counts: np.ndarray, axis: int) -> np.ndarray:
    return ratio(np.stack([sums.sum(axis=axis), counts.sum(axis=axis)], axis=-1))


class Drawn:
    """The replicates of a bootstrap, as scipy takes them from an earlier result."""

    def __init__(self, values_B: np.ndarray) -> None:
        self.bootstrap_distribution = values_B


def by_scipy(sums_PJ: np.ndarray, values_B: np.ndarray | None = None, replicates: int = 0) -> tuple[float, float]:
    """Return scipy's interval that reaches as far as ours: one end at a time, each at the level of its reach."""
    left_P = ratio(sums_PJ.sum(axis=0) - sums_PJ)
    down, up = normal_reach(left_P.mean() - left_P, LEVEL)
    ends = [
        bootstrap(
            tuple(sums_PJ.T), of_sums, paired=True, vectorized=True, method="BCa", n_resamples=replicates,
            alternative=side, confidence_level=NormalDist().cdf(reach), random_state=RNG(1),
            bootstrap_result=None if values_B is None else Drawn(values_B),
        ).confidence_interval
        for side, reach in (("greater", down), ("less", up))
    ]  # fmt: skip
    return holding(float(ends[0].low), float(ends[1].high), ratio(sums_left(sums_PJ)))


def by_us(sums_PJ: np.ndarray, seed: int = 0) -> tuple[float, float]:
    weights_BP = cluster_weights(len(sums_PJ), REPLICATES, seed)
    found = interval(sums_PJ, weights_BP, ratio, IntervalMethod.BCA, sequences=64)
    assert found.low is not None and found.high is not None
    return found.low, found.high


@pytest.mark.parametrize("name", TABLES)
def test_of_the_same_replicates_both_make_the_same_interval(name: str) -> None:
    sums_PJ = TABLES[name]
    values_B = ratio(replicate_sums(cluster_weights(len(sums_PJ), REPLICATES), sums_PJ))
    assert by_us(sums_PJ) == pytest.approx(by_scipy(sums_PJ, values_B), rel=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_of_other_replicates_they_differ_by_the_noise_of_drawing(name: str) -> None:
    # The noise is what ours differ by from seed to seed: scipy's, one more draw, lies within five times of their mean.
    ours_S2 = np.array([by_us(TABLES[name], seed) for seed in range(12)])
    noise_2 = ours_S2.std(axis=0, ddof=1)
    apart_2 = np.abs(ours_S2.mean(axis=0) - by_scipy(TABLES[name], replicates=REPLICATES))
    assert (apart_2 <= 5.0 * noise_2).all(), (apart_2, noise_2)
    # Which is little beside the interval, so that a wrong one would show.
    assert (noise_2 <= 0.1 * np.ptp(ours_S2.mean(axis=0))).all()
