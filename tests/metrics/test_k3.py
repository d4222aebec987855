import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rlaudit.statistics.metrics.k1 import k1
from rlaudit.statistics.metrics.k2 import k2
from rlaudit.statistics.metrics.k3 import k3

log_ratios = st.lists(st.floats(-500, 500), min_size=1, max_size=20).map(np.array)


@given(log_ratios)
def test_k3_is_never_negative(log_ratio_T: np.ndarray) -> None:
    assert (k3(log_ratio_T) >= 0).all()


@given(st.floats(1e-7, 1e-3), st.sampled_from([-1, 1]))
def test_k3_of_a_small_log_ratio_is_k2(magnitude: float, sign: int) -> None:
    log_ratio_T = np.array([sign * magnitude])
    np.testing.assert_allclose(k3(log_ratio_T), k2(log_ratio_T), rtol=1e-3, atol=1e-16)


@given(log_ratios)
def test_k1_changes_sign_with_the_log_ratio(log_ratio_T: np.ndarray) -> None:
    np.testing.assert_array_equal(k1(log_ratio_T), -k1(-log_ratio_T))


def test_the_mean_of_k3_is_the_divergence_between_two_known_distributions() -> None:
    rollout, trainer = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    divergence = float(rollout @ np.log(rollout / trainer))
    assert np.isclose(rollout @ k3(np.log(trainer / rollout)), divergence)
