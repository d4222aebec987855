import dataclasses
import json

import numpy as np
import pytest
from simulated_pairs import five_tokens, honest_pairs

from rlaudit.statistics.measurement.measure import all_metrics, measure
from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.text.plain import plain
from rlaudit.tokens.pairs import LogprobPairs


def test_honest_rollouts_have_a_mean_ratio_of_one_within_the_interval_however_far_apart() -> None:
    found = measure(honest_pairs(1, prompts=64, size=0.2))
    ratio, k3 = found["mean_ratio_minus_one"], found["k3"]
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 0 < ratio.high
    assert k3.low is not None
    assert k3.low > 0.05


def test_renormalised_top_p_shows_as_the_kept_mass() -> None:
    pairs = honest_pairs(2, prompts=64)
    kept_mass = 0.9
    truncated = dataclasses.replace(
        pairs,
        rollout_logprobs_T=pairs.rollout_logprobs_T - 1.0,
        trainer_logprobs_T=pairs.trainer_logprobs_T - 1.0 + np.log(kept_mass),
    )
    ratio = measure(truncated)["mean_ratio_minus_one"]
    assert ratio.value == pytest.approx(kept_mass - 1, abs=0.005)
    assert ratio.high is not None
    assert ratio.high < 0


def test_figures_of_broken_logprobs_are_refused() -> None:
    broken = dataclasses.replace(five_tokens(), trainer_logprobs_T=np.array([-1.0, np.nan, -1, -1, -1]))
    with pytest.raises(ValueError, match="not comparable: the trainer logprobs: nan at 1 of 5 tokens"):
        measure(broken)


def test_an_entropy_nobody_recorded_is_unknown_and_not_zero() -> None:
    entropy = measure(honest_pairs(0, prompts=4))["entropy"]
    assert entropy.value is None
    assert entropy.reason == "the trainer's entropy was not recorded"
    assert measure(five_tokens())["entropy"].value == pytest.approx(1.32)


def test_every_measurement_states_its_size_formula_and_unit() -> None:
    found = measure(honest_pairs(0, prompts=40), replicates=200)
    assert set(found) == set(all_metrics())
    for measurement in found.values():
        assert (measurement.sequences, measurement.clusters) == (160, 40)
        assert measurement.tokens > 160 * 32
        assert measurement.formula
        assert measurement.unit


def test_measurements_survive_json_without_nan() -> None:
    found = measure(honest_pairs(0, prompts=40), replicates=200)
    for measurement in found.values():
        read = json.loads(json.dumps(plain(measurement), allow_nan=False))
        assert read["value"] == measurement.value
        assert read["low"] == measurement.low


def test_an_interval_is_cut_to_what_the_metric_can_be() -> None:
    metric = all_metrics()["mean_abs_log_ratio"]
    pairs = honest_pairs(5, prompts=20)
    value = metric.value(pairs, ObjectiveSettings())
    narrow = (value * 0.99, value * 1.01)
    found = measure(pairs, metrics=[dataclasses.replace(metric, bounds=narrow)])[metric.name]
    assert (found.low, found.high) == narrow


def test_an_effective_sample_size_has_no_interval_and_says_why() -> None:
    found = measure(honest_pairs(0, prompts=40), replicates=100)["ess_sequence"]
    assert found.value is not None
    assert (found.low, found.high, found.reason) == (None, None, "describes this batch only")


def test_capped_log_ratios_are_reported() -> None:
    pairs = LogprobPairs(np.array([-900.0, -1.0]), np.array([-1.0, -1.0]), np.array([0, 1]), np.array([0, 1]))
    found = measure(pairs, replicates=50)
    assert found["k3"].notes == ("log ratios capped at 300 in 1 tokens",)
    assert found["ess_sequence"].notes == ("log ratios capped at 300 in 1 sequences",)
    assert found["mean_abs_log_ratio"].notes == ()


def test_a_sequence_can_be_capped_where_none_of_its_tokens_is() -> None:
    pairs = LogprobPairs(np.full(3, -200.0), np.full(3, -1.0), np.array([0, 0, 1]), np.array([0, 1]))
    found = measure(pairs, replicates=50)
    assert found["k3"].notes == ()
    assert found["ess_sequence"].notes == ("log ratios capped at 300 in 1 sequences",)


def test_prompts_without_tokens_do_not_count_as_clusters() -> None:
    padded = dataclasses.replace(honest_pairs(0, prompts=20), prompts=500)
    assert measure(padded)["k3"] == measure(honest_pairs(0, prompts=20))["k3"]
