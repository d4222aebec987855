"""Exact intervals of shares."""

import pytest
from scipy.stats import binomtest

from rlaudit.causes.attribution.alignment_signature import proportion_interval


@pytest.mark.parametrize(("events", "trials"), [(0, 5), (5, 5), (1, 20), (19, 20), (300, 1000)])
def test_it_is_the_interval_of_clopper_and_pearson(events, trials):
    exact = binomtest(events, trials).proportion_ci(0.95, "exact")
    assert proportion_interval(events, trials) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_no_trial_says_nothing():
    assert proportion_interval(0, 0) == (0.0, 1.0)
