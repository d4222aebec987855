import numpy as np
import pytest
from simulated_pairs import honest_pairs

from rlaudit.statistics.interval import IntervalMethod, interval
from rlaudit.statistics.measurement.measure import all_metrics, measure
from rlaudit.statistics.measurement.metric import mean
from rlaudit.statistics.resample import cluster_weights

METRICS = all_metrics()


def columns_of(values: list[float]) -> np.ndarray:
    return np.stack([np.array(values), np.ones(len(values))], axis=1)


def interval_of(sums_PJ: np.ndarray, method: IntervalMethod = IntervalMethod.STUDENTISED, **options: object):  # type: ignore[no-untyped-def]
    sequences = options.pop("sequences", 64)
    return interval(sums_PJ, cluster_weights(len(sums_PJ), 500), mean, method, sequences=sequences, **options)  # type: ignore[arg-type]


# Truths are from 12000 simulated prompts. The table in resample.py is from 600 simulations; the gates here
# leave room for the 2.5 points by which 150 err.
@pytest.mark.parametrize(
    ("name", "truth", "at_least"),
    [
        ("mean_ratio_minus_one", 0.0, 0.88),
        ("k3", 0.0029, 0.83),
        ("mean_abs_log_ratio", 0.0318, 0.88),
        ("median_abs_log_ratio", 0.0117, 0.89),
        ("ppo_clip_fraction", 0.0228, 0.88),
    ],
)
def test_intervals_over_prompts_cover_the_truth_about_as_often_as_they_say(
    name: str, truth: float, at_least: float
) -> None:
    covered = 0
    for seed in range(150):
        found = measure(honest_pairs(seed, prompts=40), metrics=[METRICS[name]], replicates=500, seed=seed)[name]
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert covered / 150 >= at_least


def test_treating_tokens_as_independent_would_cover_far_less() -> None:
    covered = 0
    for seed in range(150):
        values = np.abs(honest_pairs(seed, prompts=40).log_ratio_T)
        covered += abs(values.mean() - 0.0318) <= 1.96 * values.std() / np.sqrt(values.size)
    assert covered / 150 < 0.5


@pytest.mark.parametrize("method", [IntervalMethod.STUDENTISED, IntervalMethod.BCA, IntervalMethod.PERCENTILE])
def test_every_method_agrees_with_the_normal_interval_where_that_is_right(method: IntervalMethod) -> None:
    values = np.random.default_rng(0).standard_normal(400)
    found = interval_of(columns_of(values.tolist()), method)
    error = values.std() / 20
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.35 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.35 * error)
    assert found.method == method.value


def test_few_sequences_or_prompts_make_an_interval_unreliable_and_say_so() -> None:
    values = columns_of(list(np.random.default_rng(0).standard_normal(40)))
    assert interval_of(values, sequences=40).reliable
    few_sequences = interval_of(values, sequences=31)
    assert not few_sequences.reliable
    assert few_sequences.reason == "31 sequences, below 32"
    few_prompts = interval_of(values[:15], sequences=64)
    assert not few_prompts.reliable
    assert few_prompts.reason == "15 prompts, below 16"


def test_one_prompt_has_no_interval() -> None:
    found = interval_of(columns_of([1.0]))
    assert (found.low, found.high) == (None, None)
    assert found.reason == "1 prompt: nothing to resample"


def test_an_event_never_seen_still_has_an_upper_bound() -> None:
    found = interval_of(columns_of([0.0] * 50), is_share=True)
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 50))
    assert found.method == "zero events"


def test_a_mean_that_never_varies_has_an_interval_of_no_width() -> None:
    found = interval_of(columns_of([0.25] * 50))
    assert (found.low, found.high, found.method) == (0.25, 0.25, "constant")


def test_an_event_in_one_prompt_falls_back_from_studentising() -> None:
    found = interval_of(columns_of([0.0] * 49 + [1.0]), is_share=True)
    assert found.method == "bca"
    assert found.high is not None
    assert found.high >= 1 / 50


def test_a_statistic_undefined_in_some_resamples_has_no_interval() -> None:
    sums_PJ = np.array([[1.0, 1.0]] + [[0.0, 0.0]] * 3)
    assert interval_of(sums_PJ).reason == "undefined in some resamples"


def test_studentising_leans_towards_the_tail_that_was_hardly_seen() -> None:
    values = np.exp(np.random.default_rng(4).standard_normal(60))
    found = interval_of(columns_of(values.tolist()))
    assert found.high - values.mean() > 1.5 * (values.mean() - found.low)
