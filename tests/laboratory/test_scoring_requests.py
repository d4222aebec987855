"""Which arms are scored together."""

from dataclasses import replace

from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.treatment import TrainerSettings

REQUEST = ScoringRequest(TrainerSettings(dtype="float32"), {"temperature": 0.7})


def test_a_head_that_is_named_with_the_dtype_of_the_body_is_scored_with_one_that_is_not() -> None:
    assert replace(REQUEST, trainer=TrainerSettings(dtype="float32", head_dtype="float32")).key == REQUEST.key


def test_a_bias_is_a_meaning_whether_its_tokens_are_numbers_or_texts_and_the_trainer_has_none() -> None:
    for logit_bias in ({30: 2.0, 2: -1.5}, {"30": 2, "2": -1.5}, ((2, -1.5), (30, 2.0))):
        request = replace(REQUEST, sampling={"temperature": 0.7, "logit_bias": logit_bias})
        assert request.theta_sample.logit_bias == ((2, -1.5), (30, 2.0))
        assert request.theta_train.logit_bias == ()


def test_another_head_or_temperature_is_scored_anew() -> None:
    assert replace(REQUEST, trainer=TrainerSettings(dtype="float32", head_dtype="bfloat16")).key != REQUEST.key
    assert replace(REQUEST, sampling={"temperature": 1.0}).key != REQUEST.key
