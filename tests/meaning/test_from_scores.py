"""The semantic verdict in worlds where the sampler, the report and the trainer are known."""

from dataclasses import replace

import numpy as np
import pytest
from simulated_tokens import RAW, World, another, simulate

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.from_scores import identify
from rlaudit.meaning.meaning import Kind
from rlaudit.meaning.report_fit import fit_report
from rlaudit.meaning.token_tests import WhichTest
from rlaudit.meaning.words import ONE_NUMBER, unseen_by

AT_07 = Semantics(0.7)


def judged(world, **arguments):
    return identify(simulate(world), world.requested or world.sampled, world.trainer, **arguments)


@pytest.mark.parametrize(
    ("near_deterministic", "noise", "meaning"),
    [(0.0, 0.14, RAW), (0.6, 0.0014, AT_07), (0.6, 0.14, AT_07), (0.9, 0.045, RAW)],
)
def test_an_honest_noisy_engine_is_a_match(near_deterministic, noise, meaning):
    world = World(sampled=meaning, trainer=meaning, noise=noise, near_deterministic=near_deterministic)
    for seed in range(2):
        evidence = judged(another(world, seed))
        assert evidence.verdict is Verdict.MATCH, evidence.kind


@pytest.mark.parametrize("sampled", [AT_07, Semantics(0.7, top_p=0.9)])
def test_raw_logprobs_are_named_with_the_temperature_the_tokens_follow(sampled):
    evidence = judged(World(sampled=sampled, reported=RAW, trainer=AT_07, noise=0.045))
    assert evidence.verdict is Verdict.MISMATCH
    assert evidence.kind is Kind.RAW_REPORT
    assert evidence.theta_report == RAW
    assert evidence.theta_sample == sampled


def test_a_trainer_that_forgot_the_temperature_is_blamed_and_not_the_engine():
    evidence = judged(World(sampled=AT_07, trainer=RAW, noise=0.045))
    assert evidence.kind is Kind.TRAINER
    assert evidence.theta_sample == AT_07
    assert evidence.theta_report.temperature == pytest.approx(0.7, rel=0.01)


def test_a_trainer_that_does_not_replay_top_p_is_blamed_for_the_filters():
    evidence = judged(World(sampled=Semantics(0.7, top_p=0.9), trainer=AT_07, noise=0.045))
    assert evidence.kind is Kind.TRAINER
    assert evidence.theta_sample.top_p == 0.9


def test_raw_logprobs_and_a_trainer_without_temperature_agree_and_are_shown_by_the_tokens():
    evidence = judged(World(sampled=AT_07, reported=RAW, trainer=RAW))
    assert evidence.verdict is Verdict.MISMATCH
    assert not evidence.theta_report.differences(RAW)
    assert evidence.theta_sample == AT_07


@pytest.mark.parametrize("hidden", [Semantics(top_p=0.95), Semantics(top_k=20), Semantics(min_p=0.05)])
def test_truncation_that_nobody_asked_for_is_named(hidden):
    evidence = judged(World(sampled=hidden, reported=RAW, requested=RAW, noise=0.0014))
    assert evidence.kind is Kind.HIDDEN_FILTER
    assert evidence.theta_sample == hidden


@pytest.mark.parametrize(
    "meaning",
    [Semantics(top_k=5), Semantics(top_k=20), Semantics(top_p=0.8), Semantics(0.7, top_k=20, top_p=0.8)],
)
def test_a_replayed_filter_and_much_engine_noise_are_a_match(meaning):
    world = World(sampled=meaning, trainer=meaning, noise=0.14, near_deterministic=0.0)
    evidence = judged(world)
    assert evidence.verdict is Verdict.MATCH, evidence.kind


def test_a_filter_that_only_the_trainer_applies_is_no_edge_noise():
    filtered = Semantics(top_p=0.95)
    world = World(sampled=RAW, trainer=filtered, requested=filtered, noise=0.14, near_deterministic=0.0)
    assert judged(world).kind is Kind.TRAINER


@pytest.mark.parametrize("hidden", [Semantics(top_k=30), Semantics(top_p=0.7), Semantics(min_p=0.1)])
def test_a_hidden_filter_between_candidates_is_named_by_the_edge_the_tokens_show(hidden):
    evidence = judged(World(sampled=hidden, reported=RAW, requested=RAW, near_deterministic=0.0))
    (name,) = hidden.differences(RAW)
    named = evidence.figures.at_the_edge(evidence.theta_sample)
    assert evidence.kind is Kind.HIDDEN_FILTER
    assert getattr(named, name) == pytest.approx(getattr(hidden, name), rel=0.1)


def test_raw_logprobs_over_a_hidden_filter_state_the_test_that_shows_the_filter():
    world = World(
        sampled=Semantics(0.7, top_k=20), reported=RAW, requested=AT_07, trainer=AT_07, near_deterministic=0.3
    )
    evidence = judged(world)
    assert evidence.kind is Kind.RAW_REPORT
    assert evidence.figures.strongest.name is WhichTest.TOP_K


def test_a_hidden_penalty_is_stated_as_an_estimate():
    hidden = Semantics(repetition_penalty=1.3)
    evidence = judged(World(sampled=hidden, requested=RAW, reported=RAW, sequences=80, near_deterministic=0.3))
    assert evidence.kind is Kind.HIDDEN_SAMPLING
    assert evidence.theta_sample == Semantics(repetition_penalty=1.2)


def test_a_light_filter_between_candidates_that_the_report_holds_is_found_by_its_zeros():
    world = World(sampled=Semantics(top_p=0.99), requested=RAW, noise=0.07, vocabulary=100)
    found = judged(world)
    assert (found.kind, found.theta_report) == (Kind.TRAINER, world.sampled)


def test_a_list_with_a_token_of_no_probability_shows_that_the_report_holds_the_filter():
    scored = simulate(World(sampled=Semantics(top_p=0.9), reported=RAW, vocabulary=100))
    kinds = [identify(replace(scored, report_is_cut=cut), RAW, RAW).kind for cut in (False, True)]
    assert kinds == [Kind.HIDDEN_FILTER, Kind.TRAINER]


def test_near_certain_tokens_that_were_rounded_to_0_are_no_filter():
    scored = simulate(World(noise=1e-3, near_deterministic=0.95, vocabulary=100))
    object.__setattr__(scored, "rollout_logprobs_T", np.round(scored.rollout_logprobs_T, 2))
    assert not fit_report(scored, RAW).differs


def test_a_temperature_between_grid_points_is_refined():
    world = World(sampled=Semantics(0.83), requested=RAW, trainer=RAW, noise=0.0014)
    assert judged(world).theta_report.temperature == pytest.approx(0.83, abs=0.003)


def test_a_penalty_in_the_report_is_found():
    evidence = judged(World(sampled=Semantics(repetition_penalty=1.1), requested=RAW, noise=0.0014))
    assert evidence.kind is Kind.TRAINER
    assert evidence.theta_report.repetition_penalty == 1.1


def test_logprobs_of_other_tokens_are_a_mismatch_without_a_named_meaning():
    world = World(near_deterministic=0.0)
    scored = simulate(world)
    shifted = np.roll(scored.rollout_logprobs_T, 1)
    object.__setattr__(scored, "rollout_logprobs_T", shifted)
    evidence = identify(scored, RAW, RAW)
    assert evidence.verdict is Verdict.MISMATCH
    assert evidence.kind is Kind.UNEXPLAINED_BIAS


def test_too_few_sequences_are_no_match():
    assert judged(World(sequences=12)).verdict is Verdict.INCONCLUSIVE


def test_a_request_that_the_tokens_cannot_tell_from_the_trainer_is_no_match():
    world = World(sampled=Semantics(top_p=0.9999), reported=RAW, near_deterministic=0.9)
    evidence = judged(world)
    assert evidence.kind is Kind.UNTOLD
    assert evidence.requested.differences(evidence.theta_train) == ("top_p",)


def test_raw_and_processed_at_temperature_one_are_said_to_be_the_same():
    assert ONE_NUMBER in unseen_by(judged(World()))


def test_a_loss_below_the_noise_floor_shows_nothing():
    world = World(sampled=Semantics(0.99), requested=RAW, trainer=RAW)
    assert judged(world).verdict is Verdict.MISMATCH
    assert judged(world, floor_k2=1e-2).verdict is Verdict.MATCH


def test_without_tokens_nothing_is_tested():
    assert judged(World(sequences=0)).verdict is Verdict.NOT_TESTED
