"""What an estimate says of its null: few prompts, single prompts, variance that is known, rounding."""

import numpy as np
import pytest

from rlaudit.statistics.estimate import estimate_of


def sums(values_P, weights_P=None):
    values_P = np.asarray(values_P, dtype=float)
    return np.stack([values_P, np.ones_like(values_P) if weights_P is None else weights_P], axis=1)


def test_a_mean_that_all_prompts_show_is_shown():
    found = estimate_of(sums(0.3 + 0.05 * np.random.default_rng(0).standard_normal(30)))
    assert found.value == pytest.approx(0.3, abs=0.03)
    assert found.low < 0.3 < found.high
    assert found.shows(0.1)
    assert not found.leans(0.1)
    assert not found.shows(0.5)


@pytest.mark.parametrize("far", [1e-300, 1.0, 50.0, 1e6, 1e200])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_prompt_neither_shows_a_mismatch_nor_rules_one_out(far, sign):
    rng = np.random.default_rng(1)
    quiet, loud = 0.05 * rng.standard_normal(30), 0.3 + 0.05 * rng.standard_normal(30)
    quiet[7] = loud[7] = sign * far
    assert not estimate_of(sums(quiet)).shows(0.1)
    found = estimate_of(sums(loud))
    assert found.shows(0.1) or found.leans(0.1)


def test_two_prompts_are_too_few_however_well_they_agree():
    assert not estimate_of(sums([0.3, 0.3])).shows(0.1)
    assert not estimate_of(sums([0.3])).shows(0.1)


def test_few_honest_prompts_raise_no_more_alarms_than_stated():
    rng = np.random.default_rng(2)
    alarms = sum(estimate_of(sums(rng.standard_normal(4))).shows(0.0, alpha=0.05) for _ in range(2000))
    assert alarms / 2000 < 0.05


def test_a_variance_that_is_known_counts_where_the_sample_shows_less():
    found = estimate_of(sums(np.full(20, 0.3)))
    assert found.shows(0.1)
    assert not estimate_of(sums(np.full(20, 0.3)), least_variance_P=np.full(20, 1.0)).shows(0.1)


def test_what_rounding_may_move_is_no_evidence():
    assert estimate_of(sums(np.full(20, 1e-7))).shows(0.0)
    assert not estimate_of(sums(np.full(20, 1e-7)), resolution=2e-6).shows(0.0)


def test_the_difference_of_two_means_has_the_error_of_both():
    rng = np.random.default_rng(3)
    first, second = 1.0 + 0.1 * rng.standard_normal(400), 0.4 + 0.1 * rng.standard_normal(400)
    found = estimate_of(np.concatenate([sums(first), sums(second)], axis=1))
    assert found.value == pytest.approx(0.6, abs=0.02)
    assert (found.high - found.low) / 3.92 == pytest.approx(0.1 * np.sqrt(2 / 400), rel=0.15)


def test_an_estimate_is_as_certain_in_any_unit():
    values_P = 0.3 + 0.3 * np.random.default_rng(4).standard_normal(30)
    assert estimate_of(sums(1e-200 * values_P)).ln_p == pytest.approx(estimate_of(sums(values_P)).ln_p)
