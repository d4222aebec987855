"""What logs alone say of the meaning, on sound tables that are hard to tell from wrong ones."""

from dataclasses import replace

import numpy as np
import pytest
from compare_tokens import compare
from honest_tables import Shape, Size, honest_table
from logged_tokens import logged

from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.meaning import Kind

RAW = Semantics()


@pytest.mark.parametrize("seed", [145, 625])
def test_loud_noise_is_neither_a_penalty_nor_another_temperature(seed: int) -> None:
    """The likeliest token is nearly always one that was seen; noise takes from it and gives to unseen ones."""
    found = compare([honest_table(seed, Size(64, 1, 512), Shape.LOUD, 0.1)], RAW, RAW)
    assert found.layers[0].verdict is not Verdict.MISMATCH
    assert found.attribution is None or not found.attribution.names


@pytest.mark.parametrize(("seed", "entropy"), [(329, 1e-4), (847, 1e-3)])
def test_a_constant_shift_is_not_another_temperature_of_the_trainer(seed: int, entropy: float) -> None:
    found = compare([honest_table(seed, Size(16, 2, 64), Shape.SHIFT, entropy)], RAW, RAW)
    assert found.meaning is not None
    assert found.meaning.kind is Kind.UNEXPLAINED_SHIFT
    assert np.isclose(found.meaning.figures.shift, -0.05)


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        ({"sampler_at": 0.8}, Kind.HIDDEN_SAMPLING),
        ({"temperature": 0.8, "reported_at": 1.0}, Kind.RAW_REPORT),
    ],
    ids=["neither side knows", "the trainer knows what was not requested"],
)
def test_first_choices_too_many_are_the_reports_fault_only_if_the_trainer_can_know_better(world, kind):
    found = compare([logged(tops=True, entropy=False, **world)], RAW, RAW)
    assert found.meaning.kind is kind


@pytest.mark.parametrize("far", [0, 1, 1600])
def test_one_token_that_is_far_off_does_not_make_the_report_another_than_the_trainers(far):
    batch = logged(tops=True, entropy=False, temperature=0.8, sampler_at=0.8)
    rollout_T = batch.rollout_logprobs_T.copy()
    rollout_T[:far] -= 8.0
    asked = Semantics(temperature=0.8)
    found = compare([replace(batch, rollout_logprobs_T=rollout_T)], asked, asked)
    assert (found.meaning.kind is Kind.HIDDEN_SAMPLING) == (far < 2)


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        ({"noise": 0.02, "sampler_at": 0.85}, Kind.HIDDEN_SAMPLING),
        ({"noise": 0.5, "trainer_at": 1.15}, Kind.OFF_TRAINER),
    ],
    ids=["neither side knows", "the report knows"],
)
def test_tokens_sharper_than_the_trainer_are_hidden_only_if_the_report_is_not_as_sharp(world, kind):
    found = compare([logged(**world)], RAW, RAW)
    assert found.meaning.kind is kind
