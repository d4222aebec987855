"""Nulls and power of the tests on tokens, on distributions as peaked as a language model's."""

import math

import numpy as np
import pytest
from simulated_tokens import RAW, World, logits_of, scored_in, simulate
from worlds.meaning_tables import MeaningTables
from worlds.observe import draw

from rlaudit.meaning.candidates import NUCLEUS, Semantics
from rlaudit.meaning.token_tests import mean_ratio_test, support_tests, temperature_score_test, token_tests

SHARES = (0.0, 0.6, 0.9)


def by_name(tests):
    return {test.name: test for test in tests}


@pytest.mark.parametrize("near_deterministic", SHARES)
def test_a_true_null_is_rejected_by_the_support_tests_no_more_often_than_stated(near_deterministic):
    world = World(near_deterministic=near_deterministic, sequences=20, length=32)
    generator = np.random.default_rng(1)
    logits = logits_of(world, generator)
    seen = np.zeros(logits.shape, dtype=bool)
    tables = MeaningTables(logits, seen)
    logprobs = tables.distribution(RAW)
    rejected = np.zeros(3)
    for _ in range(200):
        token_ids = draw(logprobs, generator)
        scored = scored_in(world, tables, token_ids, logprobs[np.arange(len(token_ids)), token_ids])
        rejected += [test.p_value < 0.05 for test in support_tests(scored)]
    assert rejected.max() <= 0.05 * 200 + 2 * math.sqrt(200 * 0.05 * 0.95)


@pytest.mark.parametrize("near_deterministic", SHARES)
def test_hidden_top_p_is_found_from_2560_tokens_although_log_ratios_are_zero(near_deterministic):
    world = World(
        sampled=Semantics(top_p=0.95), reported=RAW, requested=RAW, near_deterministic=near_deterministic, noise=0.0
    )
    scored = simulate(world)
    assert np.abs(scored.log_ratio_T).max() < 1e-9
    found = by_name(support_tests(scored))["support-top-p"]
    assert found.shows
    assert found.p_value < 1e-6
    assert found.estimate == pytest.approx(0.95, abs=0.01)


def test_a_few_tokens_beyond_the_edge_do_not_hide_a_filter():
    scored = simulate(World(sampled=Semantics(top_p=0.9), reported=RAW, requested=RAW))
    scored.mass_above_T[:2] = 0.9995
    assert by_name(support_tests(scored))["support-top-p"].shows


def test_hidden_top_k_and_min_p_are_found_with_their_settings():
    top_k = simulate(World(sampled=Semantics(top_k=20), reported=RAW, requested=RAW))
    min_p = simulate(World(sampled=Semantics(min_p=0.05), reported=RAW, requested=RAW))
    found_k = by_name(support_tests(top_k))["support-top-k"]
    found_m = by_name(support_tests(min_p))["support-min-p"]
    assert found_k.shows and found_k.estimate == 20
    assert found_m.shows and found_m.estimate == pytest.approx(0.05, abs=0.003)


def test_the_mean_ratio_is_one_for_honest_logprobs_of_a_distant_engine():
    test = mean_ratio_test(simulate(World(noise=0.3)))
    assert test.estimate == pytest.approx(0.0, abs=0.03)
    assert not test.shows


def test_the_mean_ratio_is_the_kept_mass_under_top_p():
    scored = simulate(World(sampled=Semantics(top_p=0.9)))
    place = NUCLEUS.index(0.9)
    kept = float(scored.nucleus_mass_TG[:, place].mean())
    test = mean_ratio_test(scored)
    assert test.shows
    assert 1 + test.estimate == pytest.approx(kept, abs=0.02)


@pytest.mark.parametrize("temperature", [0.7, 1.4])
def test_the_score_tells_sharper_from_flatter_and_shows_it(temperature):
    test = temperature_score_test(simulate(World(sampled=Semantics(temperature), reported=RAW)), RAW)
    assert test.shows
    assert (test.estimate < 1) == (temperature < 1)


def test_greedy_choices_among_sampled_ones_leak():
    honest, greedy = (
        simulate(World(near_deterministic=0.0)),
        simulate(World(sampled=Semantics(0.05), near_deterministic=0.0)),
    )
    assert not by_name(token_tests(honest, RAW))["greedy-leak"].shows
    assert by_name(token_tests(greedy, RAW))["greedy-leak"].shows
