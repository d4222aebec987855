"""What chance could have made of a figure: draws, parts left out, scores, under every kernel that sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlaudit.statistics.interval import IntervalMethod, interval
from rlaudit.statistics.measurement.excess import part_of_k2
from rlaudit.statistics.resample import (
    MOST_PARTS,
    REACH,
    Resampled,
    chance_above,
    chance_apart,
    cluster_weights,
    holding,
    ln_chance_apart,
    part_of,
    replicate_sums,
    resampled,
    standard_score,
    sums_left,
)


def test_every_replicate_draws_as_many_clusters_as_there_are() -> None:
    weights_BP = cluster_weights(40, replicates=300, seed=1)
    assert weights_BP.shape == (300, 40)
    assert (weights_BP.sum(axis=1) == 40).all()
    assert weights_BP.var() == pytest.approx(1.0, rel=0.1)


def test_weights_depend_on_the_seed_alone_so_that_arms_can_share_them() -> None:
    np.testing.assert_array_equal(cluster_weights(20, 50, seed=7), cluster_weights(20, 50, seed=7))
    assert (cluster_weights(20, 50, seed=7) != cluster_weights(20, 50, seed=8)).any()


def test_replicate_sums_are_the_weighted_sums_of_the_clusters() -> None:
    weights_BP = cluster_weights(5, replicates=600, seed=0)
    sums_PJ = np.arange(10.0).reshape(5, 2)
    np.testing.assert_allclose(replicate_sums(weights_BP, sums_PJ), weights_BP.astype(float) @ sums_PJ)


@pytest.mark.parametrize("prompts", [1, 2, 5, MOST_PARTS, MOST_PARTS + 1, 300])
def test_every_prompt_is_left_out_once_and_all_others_stay(prompts):
    sums_PJ = np.random.default_rng(prompts).standard_normal((prompts, 3))
    part_P = part_of(prompts)
    left_KJ = sums_left(sums_PJ)
    assert len(left_KJ) == len(np.unique(part_P)) == min(prompts, MOST_PARTS)
    for part, left_J in enumerate(left_KJ):
        np.testing.assert_allclose(left_J, sums_PJ[part_P != part].sum(axis=0), atol=1e-12)


def test_a_prompt_that_holds_nearly_everything_leaves_no_rounding_behind():
    sums_PJ = np.ones((5, 1))
    sums_PJ[2] = 1e30
    assert sums_left(sums_PJ)[2, 0] == 4.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4), st.integers(0, 99))
def test_one_cluster_is_no_evidence_whatever_its_sums_are(sums, seed):
    sums_PJ = np.array([[*sums, 1.0]])
    found = resampled(sums_PJ, cluster_weights(1, 50, seed), lambda sums: sums[..., 0] / np.maximum(sums[..., -1], 1.0))
    for chance in (chance_above, chance_apart):
        whole, left_K = found.chances(chance)
        assert whole == 1.0
        assert (left_K == 1.0).all()


def test_replicates_of_a_mean_give_its_error_and_leave_each_part_out():
    sums_PJ = np.stack([0.3 + 0.1 * np.random.default_rng(0).standard_normal(40), np.ones(40)], axis=1)
    found = resampled(sums_PJ, cluster_weights(40), lambda sums: sums[..., 0] / sums[..., 1])
    low, high = found.percentiles()
    assert (high - low) / (2 * REACH) == pytest.approx(sums_PJ[:, 0].std() / np.sqrt(40), rel=0.1)
    whole, left_K = found.chances(chance_apart)
    assert whole < 1e-12
    assert len(left_K) == 40
    assert left_K.max() < 1e-10
    assert holding(1.0, 0.0, found.left_K) == (found.left_K.min(), found.left_K.max())


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


def test_the_resamples_of_one_prompt_show_nothing():
    replicates_B = 0.05 * (1.0 + ONE_STEP * np.resize([0.0, 1.0, 2.0], 400))
    assert part_of_k2(Resampled(0.05, replicates_B, np.zeros(0), clusters=1)).surely_p == 1.0


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
