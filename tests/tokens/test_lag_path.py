"""Correlation, and what has none."""

import numpy as np
import pytest

from rlaudit.tokens.lag_path import correlation


def test_it_is_pearsons():
    rng = np.random.default_rng(0)
    first = rng.standard_normal(200)
    second = first + rng.standard_normal(200)
    assert correlation(first, second) == pytest.approx(np.corrcoef(first, second)[0, 1])
    assert correlation(first, -first) == pytest.approx(-1.0)


@pytest.mark.parametrize("constant", [0.0, -0.1, 1 / 3, -7e3])
def test_a_constant_has_none_however_its_mean_was_rounded(constant):
    varying = np.arange(7.0)
    assert correlation(np.full(7, constant), varying) is None
    assert correlation(varying, constant * (1.0 + np.finfo(float).eps * (np.arange(7) % 2))) is None


def test_two_points_or_an_impossible_one_have_none():
    assert correlation(np.arange(2.0), np.arange(2.0)) is None
    assert correlation(np.array([0.0, 1.0, np.nan]), np.arange(3.0)) is None
