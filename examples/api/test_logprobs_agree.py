"""TRL's `test_logprobs_match_with_non_default_sampling` with the assertion of rlaudit, on recordings of TRL.

TRL asks its server and an engine for two prompts of eight tokens at a temperature of 0.7, and compares ids and logprobs
by hand. Here the rollouts are those of a training: TRL 0.23.1 at the same temperature, the same program on vLLM 0.8.5
(V0) and on 0.10.2 (V1). The recording names the temperature, and has the trainer's logprobs.

    pytest examples/api
"""

from pathlib import Path

import pytest

from rlaudit.testing import assert_logprobs_agree

RECORDED = Path(__file__).parents[1] / "recorded" / "trl-0.8.5-to-0.10.2"


@pytest.mark.parametrize(
    "engine",
    ["v0", pytest.param("v1", marks=pytest.mark.xfail(raises=AssertionError, strict=True, reason="trl#4159"))],
)
def test_logprobs_are_those_that_the_trainer_assumes(engine):
    assert_logprobs_agree(RECORDED / engine)
