import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlaudit.statistics.measurement.metric import Bins, ObjectiveSettings
from rlaudit.statistics.measurement.quantiles import VALUES, Quantile, abs_log_ratio_bins
from rlaudit.tokens.pairs import LogprobPairs


def bins_of(log_ratios: list[float]) -> Bins:
    rollout_T = np.zeros(len(log_ratios))
    pairs = LogprobPairs(rollout_T, np.array(log_ratios), np.zeros(len(log_ratios), int), np.array([0]))
    return abs_log_ratio_bins(pairs, ObjectiveSettings())


def counts_of(log_ratios: list[float]) -> np.ndarray:
    bins = bins_of(log_ratios)
    return np.bincount(bins.bin_T, minlength=bins.count).astype(float)


@given(st.floats(1.0000001e-8, 99.9))
def test_a_value_is_reported_within_three_quarters_of_a_percent(magnitude: float) -> None:
    assert VALUES[bins_of([-magnitude]).bin_T[0]] == pytest.approx(magnitude, rel=0.0075)


def test_exact_zeros_are_apart_from_the_smallest_values() -> None:
    assert VALUES[bins_of([0.0, 1e-12, 1e9]).bin_T].tolist() == [0.0, 1e-8, 100.0]


@given(st.lists(st.floats(1e-6, 50), min_size=1, max_size=300), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_quantile_is_that_of_sorting(magnitudes: list[float], share: float) -> None:
    by_sorting = np.quantile(magnitudes, share, method="inverted_cdf")
    assert Quantile(share)(counts_of(magnitudes)) == pytest.approx(by_sorting, rel=0.0151)


def test_no_token_has_no_quantile() -> None:
    assert np.isnan(Quantile(0.5)(np.zeros(VALUES.size)))
