"""A mean ratio above 1 shows raw logprobs only if a temperature was there to leave out."""

from dataclasses import replace

import numpy as np
import pytest
from logged_tokens import logged
from scipy.special import log_softmax

from rlaudit.causes import raw_logprobs
from rlaudit.causes.attribution.cause import NotTested, Signature
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.token_evidence import token_evidence


def outcome(temperature):
    batch = logged(noise=0.01, entropy=False)
    too_high = replace(batch, trainer_logprobs_T=0.8 * batch.rollout_logprobs_T)
    return raw_logprobs.signature(
        token_evidence(too_high, sampling=Semantics(temperature), trainer=Semantics(temperature))
    )


@pytest.mark.parametrize("temperature", [0.7, 2.0])
def test_a_ratio_above_one_shows_logprobs_without_the_temperature(temperature):
    found = outcome(temperature)
    assert isinstance(found, Signature)
    assert found.large


def test_at_temperature_one_there_is_nothing_to_leave_out():
    assert isinstance(outcome(1.0), NotTested)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_no_temperature_moves_a_token_farther_than_leaving_it_out_does(temperature):
    logits_TV = np.random.default_rng(0).normal(scale=3.0, size=(500, 50))
    raw_T, at_temperature_T = log_softmax(logits_TV, axis=1)[:, 0], log_softmax(logits_TV / temperature, axis=1)[:, 0]
    assert raw_logprobs.beyond_a_temperature(at_temperature_T - raw_T, raw_T, temperature) == 0.0
    assert raw_logprobs.beyond_a_temperature(100.0 + at_temperature_T - raw_T, raw_T, temperature) == 1.0
