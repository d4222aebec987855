"""The sequential test, on runs whose noise and change are known; `.ci/evidence` has the rates."""

import numpy as np
import pytest
from synthetic_runs import TRENDS, Noise, changed, seeds

from rlaudit.curves.noise_model import covariance, fit_noise, noise_grid, simulate
from rlaudit.curves.separation import Separation, separate, separates_from_constant

LENGTH = 120
CHANGE = 40


def separation_of(noise: Noise, references: int, trial: int, size: float = 0.0, ramp: int = 1) -> Separation:
    generator = np.random.default_rng([trial, references])
    runs = seeds(noise, list(TRENDS)[trial % len(TRENDS)], LENGTH, references + 1, generator)
    return separate(runs[:-1], changed(runs[-1], CHANGE, size, ramp), 0.05, True, generator)


@pytest.mark.parametrize(
    ("noise", "references"),
    [
        (Noise("ar0.5", "random walk", 1.0), 1),
        (Noise("spikes"), 3),
        (Noise("white", "random walk", 1.0), 3),
    ],
    ids=str,
)
def test_runs_that_differ_in_their_seed_alone_do_not_separate(noise: Noise, references: int) -> None:
    # At a rate of 5 % five or more of 20 have a probability of 0.3 %.
    assert sum(separation_of(noise, references, trial).detected is not None for trial in range(20)) <= 4


@pytest.mark.parametrize(("references", "size"), [(1, 6.0), (3, 4.0)])
def test_a_large_change_is_found_within_a_few_steps_of_its_beginning(references: int, size: float) -> None:
    for trial in range(4):
        found = separation_of(Noise("white"), references, trial, size)
        assert found.detected is not None
        assert found.onset is not None
        assert CHANGE <= found.detected <= CHANGE + 8
        assert abs(found.onset - CHANGE) <= 4


def test_a_drift_is_found_while_it_goes_on() -> None:
    found = separation_of(Noise("white"), 3, 1, 8.0, ramp=60)
    assert found.detected is not None
    assert CHANGE < found.detected < CHANGE + 50


def test_one_spike_is_no_separation() -> None:
    generator = np.random.default_rng(3)
    runs = seeds(Noise("white"), "flat", LENGTH, 2, generator)
    runs[1, 60] += 1e6
    assert separate(runs[:1], runs[1], 0.05, True, generator).detected is None


def test_one_broken_value_of_the_reference_does_not_hide_a_change() -> None:
    generator = np.random.default_rng(3)
    runs = seeds(Noise("white"), "flat", LENGTH, 4, generator)
    runs[0, 20] = 1e6
    assert separate(runs[:-1], changed(runs[-1], CHANGE, 30.0), 0.05, True, generator).detected is not None


def test_more_seeds_find_smaller_changes() -> None:
    def count(references: int) -> int:
        return sum(separation_of(Noise("white"), references, trial, 2.0).detected is not None for trial in range(6))

    assert count(4) > count(1)


def test_seeds_that_part_widen_the_band() -> None:
    together, apart = separation_of(Noise("white"), 3, 0), separation_of(Noise("white", "random walk", 3.0), 3, 0)
    assert (apart.high_N - apart.low_N)[-1] > 1.5 * (together.high_N - together.low_N)[-1]


def test_a_noisier_candidate_is_no_other_mean_and_its_noise_is_told() -> None:
    generator = np.random.default_rng(5)
    runs = seeds(Noise("white"), "flat", LENGTH, 4, generator)
    found = separate(runs[:-1], 3.0 * runs[-1], 0.05, True, generator)
    assert found.detected is None
    assert 2.2 < found.noise_ratio < 4.0


def test_a_positive_metric_that_spikes_is_tested_on_its_logarithm() -> None:
    generator = np.random.default_rng(6)
    runs = np.exp(generator.standard_normal((3, LENGTH)) - 6.0)
    found = separate(runs[:-1], runs[-1] * np.where(np.arange(LENGTH) < CHANGE, 1.0, 20.0), 0.05, True, generator)
    assert found.in_logs
    assert found.detected is not None
    assert CHANGE <= found.detected <= CHANGE + 12
    assert found.low_N.min() > 0


def test_the_result_does_not_depend_on_the_unit() -> None:
    generator = np.random.default_rng(7)
    runs = seeds(Noise("white"), "saturating", LENGTH, 2, generator) + 100.0
    runs[1] = changed(runs[1], CHANGE, 8.0)
    found = [separate(scale * runs[:1], scale * runs[1], 0.05, True, np.random.default_rng(0)) for scale in (1.0, 1e-9)]
    assert found[0].detected == found[1].detected
    assert found[0].threshold == pytest.approx(found[1].threshold, rel=1e-6)


def test_a_reference_without_noise_gives_no_band() -> None:
    line = np.arange(50.0)
    with pytest.raises(ValueError, match="all trend and no noise"):
        separate(line[None], line, 0.05, True, np.random.default_rng(0))
    with pytest.raises(ValueError, match="identical"):
        separate(np.stack([np.sin(line)] * 2), line, 0.05, True, np.random.default_rng(0))


def test_rounding_of_a_straight_line_is_no_noise_on_any_processor():
    """Its shape, which differs by processor, would decide whether logarithms are taken, in which a line is curved."""
    line = np.arange(30) + 0.5
    for wobble in np.random.default_rng(5).exponential(2e-15, (20, 30)):
        with pytest.raises(ValueError, match="all trend and no noise"):
            separate(line[None] + wobble, line[None], 0.01, False, np.random.default_rng(0))


def several(noise: Noise, trial: int, size: float, candidates: int) -> Separation:
    """Three seeds of the reference, and these of a candidate that is changed all along."""
    generator = np.random.default_rng([trial, candidates])
    runs = seeds(noise, "flat", LENGTH, 3 + candidates, generator)
    moved = np.stack([changed(run, CHANGE, size) for run in runs[3:]])
    return separate(runs[:3], moved, 0.05, True, generator)


@pytest.mark.parametrize("noise", [Noise("white"), Noise("white", "random walk", 1.0)], ids=str)
def test_several_seeds_of_a_candidate_raise_no_more_alarms_than_one(noise: Noise) -> None:
    assert sum(several(noise, trial, 0.0, 3).detected is not None for trial in range(20)) <= 4


def test_several_seeds_of_a_candidate_show_what_one_hides() -> None:
    found = [
        sum(several(Noise("white"), trial, 1.0, count).detected is not None for trial in range(12)) for count in (1, 4)
    ]
    assert found[1] >= found[0] + 3
    assert several(Noise("white"), 0, 0.0, 4).resolution < several(Noise("white"), 0, 0.0, 1).resolution


def test_a_lasting_difference_above_the_resolution_is_seen_and_a_small_one_is_not() -> None:
    generator = np.random.default_rng(11)
    runs = seeds(Noise("white"), "flat", LENGTH, 4, generator)
    limit = separate(runs[:-1], runs[-1], 0.05, True, generator).resolution
    assert separate(runs[:-1], changed(runs[-1], CHANGE, 3 * limit), 0.05, True, generator).detected is not None
    assert separate(runs[:-1], changed(runs[-1], CHANGE, limit / 3), 0.05, True, generator).detected is None


def test_a_candidate_that_leaves_a_constant_reference_is_found_by_the_signs() -> None:
    candidate = np.zeros(50)
    candidate[30:] = 0.1
    assert separates_from_constant(np.zeros((1, 50)), candidate, 0.05) == (34, 30)
    assert separates_from_constant(np.zeros((3, 50)), candidate, 0.05) == (32, 30)
    assert separates_from_constant(np.zeros((1, 50)), candidate[:33], 0.05) is None


def test_the_signs_count_only_where_all_seeds_of_a_candidate_differ() -> None:
    candidates = np.zeros((3, 50))
    candidates[:, 30:] = 0.1
    # One of 20 ways to pick three of six: 1 / 20 at a step is 5 %.
    assert separates_from_constant(np.zeros((3, 50)), candidates, 0.05) == (30, 30)
    candidates[0] = 0.0
    assert separates_from_constant(np.zeros((3, 50)), candidates, 0.05) is None


def test_simulated_noise_has_the_covariance_of_its_model() -> None:
    generator = np.random.default_rng(8)
    runs = seeds(Noise("ar0.5", "random walk", 2.0), "flat", 60, 6, generator)
    model = fit_noise((runs - runs.mean(axis=0)).T[:, :5], np.empty((60, 0)), noise_grid(60, True, True))
    curves = simulate(model, 20_000, 1, generator)
    np.testing.assert_allclose(
        np.cov(curves), 2 * covariance(model), rtol=0.15, atol=0.05 * 2 * covariance(model).max()
    )


def test_noise_is_measured_from_seeds_that_part_and_from_seeds_that_do_not() -> None:
    generator = np.random.default_rng(9)
    for noise, expected in ((Noise("white"), 1.0), (Noise("white", "random walk", 4.0), 17.0)):
        runs = seeds(noise, "flat", 200, 40, generator)
        model = fit_noise((runs - runs.mean(axis=0)).T[:, :39], np.empty((200, 0)), noise_grid(200, True, True))
        assert covariance(model)[-1, -1] == pytest.approx(expected, rel=0.5)
