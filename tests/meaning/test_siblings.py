"""What samples of one prompt say of the distribution that they were drawn from."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds.sibling_tree import at, tree

from rlaudit.meaning.siblings import agreement, shared_draws
from rlaudit.tokens.token_batch import concatenate

HONEST = at()
BY_TOKEN = ("rollout_logprobs_T", "trainer_logprobs_T", "token_id_T", "position_T", "sequence_T")


def judged(batch, side="rollout_logprobs_N"):
    draws = shared_draws(batch, batch.prompt_S)
    return agreement(draws, getattr(draws, side))


def test_samples_whose_shared_tokens_do_not_count_are_no_siblings():
    batch = tree(np.random.default_rng(1), 8, 4, sampler=HONEST, report=HONEST)
    masked = replace(batch, token_columns={**batch.token_columns, "loss_mask": np.zeros(batch.tokens)})
    assert shared_draws(masked, masked.prompt_S) is None


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_an_honest_report_is_what_siblings_agree_with(temperature, noise):
    sampler = at(temperature, top_p=0.95)
    found = judged(tree(np.random.default_rng(1), 96, 8, sampler=sampler, report=sampler, noise=noise))
    assert max(abs(one.score) for one in (found.excess, found.step, found.odds)) < 3.5


def test_raw_logprobs_at_a_low_temperature_are_told_with_the_temperature():
    found = judged(tree(np.random.default_rng(2), 128, 16, sampler=at(0.7), report=HONEST))
    assert found.step.shows(0.03)
    assert found.odds.shows(0.03)
    assert found.odds.low < 1 / 0.7 - 1 < found.odds.high + 0.15  # one Newton step falls short of a large change


@pytest.mark.parametrize("temperature", [0.95, 1.05])
@pytest.mark.parametrize("sharpness", [(1.0, 6.0), (0.5, 30.0)])
def test_a_small_change_is_told_in_its_size_however_much_contexts_differ(temperature, sharpness):
    steps = []
    for seed in range(6):
        rng = np.random.default_rng((7, seed))
        found = judged(tree(rng, 256, 8, sampler=at(temperature), report=HONEST, sharpness=sharpness))
        steps.append(found.step.value)
    assert 0.75 < np.mean(steps) / (1 / temperature - 1) < 1.35


def test_a_hidden_filter_moves_agreement_and_leaves_odds_alone():
    found = judged(tree(np.random.default_rng(3), 128, 16, sampler=at(top_p=0.8), report=HONEST))
    assert found.step.shows(0.03)
    assert abs(found.odds.score) < 3.5


def test_a_flatter_sampler_agrees_less_than_reported():
    found = judged(tree(np.random.default_rng(4), 256, 16, sampler=at(1.3), report=HONEST))
    assert found.step.shows(0.03)
    assert found.step.value < 0 and found.excess.value < 0


def test_the_trainers_logprobs_in_the_reports_place_say_whether_they_are_the_samplers():
    batch = tree(np.random.default_rng(5), 128, 16, sampler=at(0.7), report=at(0.7), trainer=HONEST)
    assert not judged(batch).step.shows(0.03)
    assert judged(batch, "trainer_logprobs_N").step.shows(0.03)


@pytest.mark.parametrize("top_p", [0.8, 0.95])
def test_no_filter_that_was_in_force_is_ruled_out(top_p):
    sampler = at(top_p=top_p)
    assert judged(tree(np.random.default_rng(6), 128, 16, sampler=sampler, report=HONEST)).reach <= top_p
    assert judged(tree(np.random.default_rng(6), 128, 16, sampler=HONEST, report=HONEST)).reach > 0.98


def test_a_min_p_that_was_in_force_is_not_ruled_out():
    sampler = at(min_p=0.05)
    assert judged(tree(np.random.default_rng(7), 128, 16, sampler=sampler, report=HONEST)).floor >= 0.05
    assert judged(tree(np.random.default_rng(7), 128, 16, sampler=HONEST, report=HONEST)).floor < 0.01


def test_tokens_that_were_not_sampled_stand_in_the_context_and_are_no_draws():
    batch = tree(np.random.default_rng(8), 64, 8, sampler=HONEST, report=HONEST)
    first_T = batch.position_T == 0
    masked = replace(batch, token_columns={"loss_mask": (~first_T).astype(float)})
    draws, all_draws = shared_draws(masked, batch.prompt_S), shared_draws(batch, batch.prompt_S)
    assert len(draws.token_N) == len(all_draws.token_N) - first_T.sum()
    np.testing.assert_array_equal(draws.token_N, all_draws.token_N[first_T.sum() :])


def test_samples_of_other_weights_are_no_siblings():
    batch = tree(np.random.default_rng(9), 32, 2, sampler=HONEST, report=HONEST)
    version_T = (batch.sequence_T % 2).astype(float)
    apart = replace(batch, token_columns={"rollout_version": version_T})
    assert shared_draws(apart, batch.prompt_S) is None


def test_groups_that_end_together_in_the_middle_of_a_longer_log_are_read():
    batch = tree(np.random.default_rng(11), 4, 3, 1, sampler=HONEST, report=HONEST)
    # The longest sequence of all answers a prompt of its own.
    lonely = tree(np.random.default_rng(12), 1, 1, 1, sampler=HONEST, report=HONEST)
    longest = replace(
        lonely, **{name: np.repeat(getattr(lonely, name), 5) for name in BY_TOKEN}, prompt_S=np.array([4])
    )
    both = concatenate([batch, replace(longest, position_T=np.arange(5))])
    assert shared_draws(both, both.prompt_S).prompts == 5


def test_without_token_ids_nothing_is_said():
    batch = tree(np.random.default_rng(10), 8, 2, sampler=HONEST, report=HONEST)
    blind = replace(batch, token_id_T=np.full(batch.tokens, -1))
    assert shared_draws(blind, batch.prompt_S) is None


@settings(max_examples=40, deadline=None)
@given(
    prompts=st.integers(1, 40),
    samples=st.integers(1, 9),
    sharpest=st.floats(0.0, 40.0),
    seed=st.integers(0, 2**16),
    ragged=st.booleans(),
)
def test_no_sound_table_has_a_cause(prompts, samples, sharpest, seed, ragged):
    rng = np.random.default_rng(seed)
    batch = tree(
        rng,
        prompts,
        samples,
        12,
        sampler=HONEST,
        report=HONEST,
        sharpness=(0.0, sharpest),
        ragged=ragged,
        vocabulary=64,
    )
    draws = shared_draws(batch, batch.prompt_S)
    found = None if draws is None else agreement(draws, draws.rollout_logprobs_N)
    if found is not None:
        assert not found.step.shows(0.03)
        assert not found.excess.shows(0.01)
        assert not found.odds.shows(0.03)


def test_no_top_k_that_was_in_force_is_ruled_out():
    sampler = at(top_k=5)
    assert judged(tree(np.random.default_rng(13), 64, 16, sampler=sampler, report=HONEST)).rank <= 5
    assert judged(tree(np.random.default_rng(13), 64, 16, sampler=HONEST, report=HONEST)).rank > 5
