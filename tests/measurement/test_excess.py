"""The squared log ratio is divided among covariates in proportion to what each really adds."""

import numpy as np
import pytest

from rlaudit.causes.attribution.base_slope import base_slope
from rlaudit.statistics.measurement.excess import CONSTANT, fit_excess


def world(seed, parts, outliers=0.0, clusters=40, tokens=100):
    """d ~ N(0, room^2 (1 + sum of coefficient * covariate)); covariates are uniform."""
    rng = np.random.default_rng(seed)
    cluster_T = np.repeat(np.arange(clusters), tokens)
    room_T = rng.uniform(0.0, 1.0, cluster_T.size)
    bases = {name: rng.random((cluster_T.size, 1)) for name in parts}
    variance_T = 1.0 + sum(parts[name] * bases[name][:, 0] for name in parts)
    d_T = 0.01 * room_T * np.sqrt(variance_T) * rng.standard_normal(cluster_T.size)
    far_T = rng.random(cluster_T.size) < outliers
    d_T[far_T] += np.sign(d_T[far_T]) * 0.5 * room_T[far_T]
    return d_T, room_T, cluster_T, bases


def test_parts_are_recovered_in_proportion():
    model = fit_excess(*world(0, {"first": 6.0, "second": 2.0, "nothing": 0.0}))
    whole = sum(part.k2 for part in model.parts.values())
    assert whole == pytest.approx(model.k2, rel=0.05)
    shares = {name: part.k2 / whole for name, part in model.parts.items()}
    assert shares["first"] == pytest.approx(3 / 5, abs=0.08)
    assert shares["second"] == pytest.approx(1 / 5, abs=0.08)
    assert shares[CONSTANT] == pytest.approx(1 / 5, abs=0.08)
    assert shares["nothing"] < 0.05


def test_nothing_is_divided_where_all_log_ratios_are_zero():
    d_T, room_T, cluster_T, bases = world(0, {"first": 6.0})
    model = fit_excess(np.zeros_like(d_T), room_T, cluster_T, bases)
    assert model.k2 == 0.0
    assert all((part.k2, part.p_value) == (0.0, 1.0) for part in model.parts.values())


def test_intervals_hold_the_truth_and_nothing_is_rarely_significant():
    truth = 0.5 * 1e-4 * (1 / 3) * 2.0 / 2
    held, alarms = 0, 0
    for seed in range(40):
        model = fit_excess(*world(seed, {"real": 2.0, "nothing": 0.0}))
        held += model.parts["real"].low <= truth <= model.parts["real"].high
        alarms += model.parts["nothing"].p_value < 0.01
    assert held >= 34
    assert alarms <= 3


def test_a_few_outliers_are_reported_apart_and_do_not_feed_a_covariate():
    model = fit_excess(*world(1, {"nothing": 0.0}, outliers=0.005))
    assert model.outliers.k2 > 0.8 * model.k2
    assert 0.002 < model.outlier_T.mean() < 0.008
    assert model.parts["nothing"].k2 < 0.05 * model.outliers.k2


def test_shares_are_of_what_lies_above_the_floor():
    d_T, room_T, cluster_T, bases = world(2, {"real": 6.0})
    plain = fit_excess(d_T, room_T, cluster_T, bases)
    above = fit_excess(d_T, room_T, cluster_T, bases, floor_k2=0.5 * plain.k2)
    assert above.share(above.parts["real"])[0] == pytest.approx(2 * plain.share(plain.parts["real"])[0])


def test_tokens_near_certainty_are_left_out_of_the_fit():
    d_T, room_T, cluster_T, bases = world(3, {"real": 2.0})
    room_T[:50] = 1e-4
    d_T[:50] = 1e-3
    assert np.isnan(fit_excess(d_T, room_T, cluster_T, bases).standardised_T[:50]).all()


@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
def test_the_slope_on_a_base_model_is_recovered(slope):
    rng = np.random.default_rng(4)
    cluster_T = np.repeat(np.arange(40), 100)
    room_T = rng.uniform(0.05, 1.0, cluster_T.size)
    leaning_T = 0.5 * room_T * rng.standard_normal(cluster_T.size)
    d_T = -slope * leaning_T + 0.01 * room_T * rng.standard_normal(cluster_T.size)
    found = base_slope(d_T, leaning_T, room_T, cluster_T)
    assert found.slope == pytest.approx(slope, abs=0.01)
    assert (found.part.p_value < 1e-6) == (slope > 0)
    assert np.square(found.left_T).mean() == pytest.approx(1e-4 * np.square(room_T).mean(), rel=0.1)
