"""Every metric on five tokens with log ratios 0.1, -0.2, 0, 0.7, -0.05, against numbers from hand."""

import dataclasses

import numpy as np
import pytest
from simulated_pairs import five_tokens

from rlaudit.statistics.measurement.measure import all_metrics, measure
from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.tokens.pairs import LOG_RATIO_CAP, LogprobPairs

SETTINGS = ObjectiveSettings(gspo_epsilon_low=0.04, gspo_epsilon_high=0.04)
BY_HAND = {
    "bitwise": 4 / 5,  # one log ratio is 0
    "entropy": 6.6 / 5,
    "ess_sequence": 0.8861948369286322,  # weights e^-0.1 and e^0.65
    "ess_token": 0.8833421197695782,
    "gspo_clip_fraction": 1 / 2,  # mean log ratios -0.0333 (kept, ln 0.96 = -0.0408) and 0.325 (clipped)
    "k1": -0.55 / 5,
    "k2": 0.5425 / 2 / 5,
    "k3": 0.06777676062496404,
    "mean_abs_log_ratio": 1.05 / 5,
    "mean_ratio_minus_one": 0.17777676062496404,
    "median_abs_log_ratio": 0.1,
    "p99_abs_log_ratio": 0.7,
    "ppo_clip_fraction": 1 / 5,  # 0.7; ln 0.8 = -0.223 keeps -0.2
    "probs_diff_mean": 0.03156471208185542,
    "sequence_k2": ((0.1 / 3) ** 2 + 0.325**2) / 4,
    "tail_fraction_2": 1 / 5,  # ln 2 = 0.693
    "token_mult_prob_error": 1.2783194960164637,
    "total_variation": 0.13489634479674287,
}
QUANTILES = {"median_abs_log_ratio", "p99_abs_log_ratio"}


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_the_metric_equals_the_hand_computed_number(name: str) -> None:
    value = all_metrics()[name].value(five_tokens(), SETTINGS)
    assert value == pytest.approx(BY_HAND[name], rel=0.0075 if name in QUANTILES else 1e-12)


def test_no_metric_is_left_without_a_hand_computed_number() -> None:
    assert set(BY_HAND) == set(all_metrics())


def test_equal_logprobs_give_exact_agreement() -> None:
    pairs = five_tokens()
    equal = dataclasses.replace(pairs, trainer_logprobs_T=pairs.rollout_logprobs_T)
    values = {name: metric.value(equal, SETTINGS) for name, metric in all_metrics().items()}
    assert {name: value for name, value in values.items() if value != 0} == pytest.approx(
        {"entropy": 1.32, "ess_sequence": 1.0, "ess_token": 1.0, "token_mult_prob_error": 1.0}
    )


def test_log_ratios_beyond_float64_stay_finite_and_raise_no_warning() -> None:
    pairs = LogprobPairs(np.array([-9000.0, -0.1]), np.array([-0.1, -9000.0]), np.array([0, 1]), np.array([0, 1]))
    for metric in all_metrics().values():
        if metric.unavailable(pairs) is None:
            assert np.isfinite(metric.value(pairs, SETTINGS)), metric.name
    assert all_metrics()["mean_ratio_minus_one"].value(pairs, SETTINGS) == pytest.approx(np.exp(LOG_RATIO_CAP) / 2)


def test_ratio_of_means_pools_tokens_instead_of_averaging_sequence_means() -> None:
    pairs = LogprobPairs(np.full(4, -1.0), np.array([-1.0, -1.0, -1.0, -0.6]), np.array([0, 0, 0, 1]), np.array([0, 1]))
    assert all_metrics()["mean_abs_log_ratio"].value(pairs, SETTINGS) == pytest.approx(0.1)


def test_a_ratio_on_the_clip_bound_is_not_clipped() -> None:
    rollout_T = np.array([-1.0, -1.0])
    log_ratio_T = np.array([np.log1p(0.2), np.log1p(-0.2)])
    pairs = LogprobPairs(np.zeros(2) - 1.0, rollout_T + log_ratio_T * (1 - 1e-9), np.array([0, 0]), np.array([0]))
    assert all_metrics()["ppo_clip_fraction"].value(pairs, ObjectiveSettings()) == 0.0
    tighter = ObjectiveSettings(ppo_epsilon_low=0.2, ppo_epsilon_high=0.19)
    assert all_metrics()["ppo_clip_fraction"].value(pairs, tighter) == 0.5


@pytest.mark.parametrize("epsilons", [{"ppo_epsilon_low": 0.0}, {"gspo_epsilon_low": 1.5}, {"ppo_epsilon_high": -1}])
def test_epsilons_that_clip_everything_or_nothing_are_refused(epsilons: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(epsilons))):
        ObjectiveSettings(**epsilons)


def test_bytes_are_those_of_a_float32_and_are_not_compared_under_lag() -> None:
    """float32 holds seven digits: what engines log as float64 after a float32 computation is the same."""
    pairs = LogprobPairs(np.array([-0.1, -0.2]), np.array([-0.1 - 1e-10, -0.2 - 1e-7]), np.array([0, 0]), np.array([0]))
    bitwise = all_metrics()["bitwise"]
    assert bitwise.value(pairs, SETTINGS) == 0.5 and bitwise.unavailable(pairs) is None
    lagged = dataclasses.replace(pairs, lagged=True)
    measured = measure(lagged, SETTINGS)["bitwise"]
    assert measured.value is None and (measured.reason or "").startswith("not comparable")
    assert lagged.keep(np.array([True, False])).lagged
