"""An error that is only rounding makes no evidence, whichever way a processor sums."""

import numpy as np
import pytest

from rlaudit.attribution.excess import _summary
from rlaudit.statistics.resample import IntervalMethod, cluster_weights, interval
from rlaudit.statistics.standard_score import chance_above, chance_apart, ln_chance_apart, standard_score

ONE_STEP = np.finfo(np.float64).eps


def test_a_score_counts_standard_errors_from_what_was_expected():
    assert standard_score(0.3, 0.1, 30) == pytest.approx(3.0)
    assert standard_score(0.3, 0.1, 30, expected=0.5) == pytest.approx(-2.0)


@pytest.mark.parametrize("error", [0.0, 5e-324, 1e-18, 0.1 * ONE_STEP])
def test_one_prompt_has_no_error_whatever_its_resamples_differ_by(error):
    assert standard_score(0.1, error, 1) == 0.0


@pytest.mark.parametrize("error", [0.0, 5e-324, 1e-18, 0.1 * ONE_STEP])
def test_prompts_that_agree_to_the_last_digit_count_alike_under_every_kernel(error):
    assert standard_score(0.1, error, 8) == standard_score(0.1, 0.0, 8) > 1e8
    assert standard_score(0.0, 0.0, 8) == 0.0
    assert abs(standard_score(1.0 + ONE_STEP, error, 8, expected=1.0)) < 1e-6


def test_the_resamples_of_one_prompt_convict_nobody():
    replicates_B = 0.05 * (1.0 + ONE_STEP * np.resize([0.0, 1.0, 2.0], 400))
    assert _summary(0.05, replicates_B, np.zeros(0), clusters=1).surely_p == 1.0


def test_few_prompts_take_a_larger_score_than_many():
    assert chance_above(3.0, 1) == 1.0
    assert chance_above(3.0, 3) == pytest.approx(0.0477, abs=1e-3)
    assert chance_above(3.0, 100_000) == pytest.approx(0.00135, abs=1e-5)
    assert chance_apart(-3.0, 3) == 2 * chance_above(3.0, 3)
    assert chance_apart(0.0, 5) == 1.0
    assert ln_chance_apart(1e9, 100_000) == pytest.approx(-744, abs=1)


def test_replicates_that_differ_by_the_order_of_sums_are_constant_to_an_interval():
    sums_PJ = np.array([[0.1 * (1.0 + ONE_STEP * step), 1.0] for step in (0, 1, 2, 1) * 8])
    found = interval(
        sums_PJ, cluster_weights(32), lambda sums: sums[..., 0] / sums[..., 1], IntervalMethod.STUDENTISED, sequences=32
    )
    assert found.method == "constant"
