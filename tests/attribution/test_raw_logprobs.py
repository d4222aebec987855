"""A mean ratio above 1 shows raw logprobs only if a temperature was there to leave out."""

from dataclasses import replace

import pytest
from logged_tokens import logged

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
