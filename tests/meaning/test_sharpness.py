"""Sharpness of tokens against entropies: what it finds, and that collapsed policies show nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax

from rlaudit.meaning.sharpness import sharpness

ALPHA = 1.25e-5
LEAST = 0.03


def drawn(seed, lead, temperature=1.0, prompts=40, length=200):
    """Logprobs and entropies of tokens drawn at a temperature from distributions that one token leads."""
    rng = np.random.default_rng(seed)
    logits_TV = rng.standard_normal((prompts * length, 50))
    logits_TV[:, 0] += lead * rng.uniform(0.7, 1.3, len(logits_TV))
    logprobs_TV = log_softmax(logits_TV, axis=1)
    token_T = (logits_TV / temperature + rng.gumbel(size=logits_TV.shape)).argmax(axis=1)
    entropy_T = -(np.exp(logprobs_TV) * logprobs_TV).sum(axis=1)
    cluster_T = np.repeat(np.arange(prompts), length)
    return logprobs_TV[np.arange(len(token_T)), token_T], entropy_T, cluster_T, prompts


@pytest.mark.parametrize("lead", [9.0, 12.0, 14.0, 16.0, 18.0, 24.0])
def test_honest_tokens_of_a_collapsed_policy_show_nothing(lead):
    for seed in range(12):
        found = sharpness(*drawn(seed, lead))
        assert not found.shows(LEAST, ALPHA)
        assert not found.leans(LEAST, ALPHA)


@pytest.mark.parametrize(("temperature", "sign"), [(0.7, 1), (1.4, -1)])
def test_another_temperature_is_shown_and_named(temperature, sign):
    found = sharpness(*drawn(0, 2.0, temperature))
    assert found.shows(LEAST, ALPHA)
    assert np.sign(found.inverse_step) == sign
    assert 1 / (1 + found.inverse_step) == pytest.approx(temperature, rel=0.2)


def test_another_temperature_of_a_nearly_collapsed_policy_shows_where_surprises_were_to_be_expected():
    assert sharpness(*drawn(0, 7.0, 0.6, prompts=80)).shows(LEAST, ALPHA)


@given(arrays(np.float64, st.integers(2, 12), elements=st.floats(-30.0, 30.0)))
def test_the_variance_that_one_probability_and_the_entropy_imply_is_never_too_large(logits_V):
    logprobs_V = log_softmax(logits_V)
    probability_V = np.exp(logprobs_V)
    entropy = -(probability_V * logprobs_V).sum()
    variance = (probability_V * np.square(logprobs_V + entropy)).sum()
    room_V = -np.expm1(logprobs_V)
    usable_V = room_V > 1e-9
    implied_V = np.square(logprobs_V + entropy)[usable_V] * probability_V[usable_V] / room_V[usable_V]
    assert (implied_V <= variance * (1 + 1e-6) + 1e-9).all()


def test_equal_probabilities_have_no_sharpness_to_be_wrong_about():
    tokens = 4000
    logprobs_T = np.full(tokens, np.float32(-np.log(200)), dtype=np.float64)
    found = sharpness(logprobs_T, np.full(tokens, np.log(200)), np.repeat(np.arange(40), 100), 40)
    assert not found.shows(LEAST, ALPHA)


def test_one_entropy_of_anything_possible_neither_shows_a_mismatch_nor_rules_one_out():
    for temperature in (1.0, 0.9):
        logprobs_T, entropy_T, cluster_T, prompts = drawn(3, 2.0, temperature)
        before = sharpness(logprobs_T, entropy_T, cluster_T, prompts)
        assert before.shows(LEAST, ALPHA) == (temperature != 1.0)
        for extreme in (0.0, 12.0, 1e4):
            entropy_T[17] = extreme
            found = sharpness(logprobs_T, entropy_T, cluster_T, prompts)
            assert (
                not found.shows(LEAST, ALPHA)
                if temperature == 1.0
                else (found.shows(LEAST, ALPHA) or found.leans(LEAST, ALPHA))
            )


@pytest.mark.parametrize(("error", "is_within"), [(0.028, True), (0.03, False)])
def test_tokens_are_as_sharp_if_a_change_that_matters_would_have_been_seen_in_95_of_100(error, is_within):
    found = replace(sharpness(*drawn(0, 2.0)), inverse_step=0.0, error=error)
    assert found.within(0.05 / 1.05) is is_within
