import numpy as np
import pytest
from simulated_tokens import RAW, World, simulate

from rlaudit.errors import UsageError
from rlaudit.meaning.candidates import INVERSE_TEMPERATURES, Semantics, candidate_semantics
from rlaudit.meaning.report_fit import fit_report, huber_losses
from rlaudit.meaning.scored_tokens import ScoredTokens


def test_candidates_hold_the_request_raw_and_what_versions_leave_out_each_once():
    request = Semantics(0.7, top_p=0.9, repetition_penalty=1.05)
    candidates = candidate_semantics(request, trainer_temperature=1.0)
    assert candidates[0] == request
    assert len(candidates) == len(set(candidates)) == len({one.name for one in candidates})
    for expected in (
        RAW,
        Semantics(0.7),
        Semantics(1.0, top_p=0.9, repetition_penalty=1.05),  # processed without temperature
        Semantics(0.7, top_p=0.9),  # penalties lost
        Semantics(0.7, repetition_penalty=1.05),
    ):
        assert expected in candidates


def test_a_requested_bias_is_tried_with_and_without_and_has_its_place_in_the_name():
    request = Semantics(0.7, repetition_penalty=1.07, logit_bias={"30": 2, "2": -1.5})
    candidates = candidate_semantics(request, trainer_temperature=0.7)
    assert {Semantics(0.7, repetition_penalty=1.07), Semantics(0.7, logit_bias=((2, -1.5), (30, 2.0)))} < {*candidates}
    assert request.name == "T=0.7 repetition_penalty=1.07 logit_bias={2: -1.5, 30: 2}"
    assert not Semantics(logit_bias=((2, 1.0),)).plain
    assert request.differences(Semantics(0.7, repetition_penalty=1.07)) == ("logit_bias",)


@pytest.mark.parametrize("logit_bias", [{"a": 1}, {-1: 1}, {3: float("nan")}, [1, 2], 3, {3: None}, "x"])
def test_a_bias_that_vllm_does_not_take_is_refused(logit_bias):
    with pytest.raises(UsageError, match="logit_bias"):
        Semantics(logit_bias=logit_bias)


@pytest.mark.parametrize(
    "parameters", [{"temperature": 0.0}, {"top_p": 0.0}, {"top_k": -1}, {"min_p": 1.5}, {"repetition_penalty": 0.0}]
)
def test_parameters_no_sampler_takes_are_refused(parameters):
    with pytest.raises(UsageError):
        Semantics(**parameters)


def test_temperatures_within_three_percent_are_the_same_and_filters_never_are():
    assert Semantics(0.7).differences(Semantics(0.71)) == ()
    assert Semantics(0.7).differences(Semantics(0.75)) == ("temperature",)
    assert Semantics(top_p=0.9).differences(Semantics(top_p=0.91)) == ("top_p",)


def test_logprobs_between_grid_points_are_interpolated_to_a_thousandth_of_a_nat():
    scored = simulate(World(near_deterministic=0.3))
    low, high = INVERSE_TEMPERATURES[6:8]
    between = Semantics(2.0 / (low + high))
    exact = simulate(World(near_deterministic=0.3, reported=between))
    assert np.abs(scored.logprobs_under(between) - exact.rollout_logprobs_T).max() < 1e-3
    assert scored.logprobs_under(Semantics(9.0)) is None


def test_an_impossible_token_is_a_loss_and_not_a_nan():
    reported, explained = np.zeros(1000), np.zeros(1000)
    explained[:2] = -np.inf
    edge = huber_losses(reported, explained, edge=0.005).mean()
    explained[:50] = -np.inf
    ruled_out = huber_losses(reported, explained, edge=0.005).mean()
    assert 0 < edge < 2e-3
    assert ruled_out > 0.5


def test_a_better_meaning_on_two_prompts_of_the_batch_is_not_accepted():
    scored = simulate(World(noise=0.001))
    reported = scored.rollout_logprobs_T.copy()
    first = scored.sequence_T < 2
    reported[first] = scored.logprobs_under(Semantics(0.5))[first]
    object.__setattr__(scored, "rollout_logprobs_T", reported)
    assert not fit_report(scored, RAW).differs


def test_sizes_that_do_not_fit_are_named():
    scored = simulate(World())
    fields = {name: getattr(scored, name) for name in ScoredTokens.__dataclass_fields__}
    with pytest.raises(ValueError, match="entropy_T"):
        ScoredTokens(**{**fields, "entropy_T": np.zeros(3)})
