"""Shifts by more tokens than a path through near lags knows."""

from dataclasses import replace

import numpy as np
import pytest
from token_tables import table, with_trainer

from rlaudit.tokens.alignment import Misalignment, alignment_report


def moved(batch, sequences, lag):
    """The trainer's logprobs of these sequences, `lag` tokens later."""
    rows = batch.trainer_logprobs_T.reshape(batch.sequences, -1).copy()
    rows[sequences] = np.roll(rows[sequences], lag, axis=1)
    return with_trainer(batch, rows.ravel())


@pytest.mark.parametrize(("lag", "count"), [(4, 40), (-6, 3), (12, 20)])
def test_a_far_shift_is_a_shift_and_not_other_tokens(lag, count):
    report = alignment_report(moved(table(length=60), range(count), lag))
    assert set(report.counts) == {Misalignment.OFF_BY_ONE} and count - 1 <= len(report.misaligned) <= count
    assert {sequence.lag for sequence in report.misaligned} == {lag}


def test_repeated_text_under_other_weights_is_not_shifted_by_its_period():
    batch = table(length=80, noise=1.0, peaked=0.2)
    rollout = np.tile(batch.rollout_logprobs_T.reshape(batch.sequences, -1)[:, :10], 8)
    trainer = rollout + np.tile(np.random.default_rng(3).standard_normal((batch.sequences, 10)), 8)
    report = alignment_report(with_trainer(batch, np.minimum(trainer, 0.0).ravel()))
    assert not report.refused


@pytest.mark.parametrize("lag", [-22, -9, 3])
def test_text_that_repeats_is_not_shifted_where_other_weights_find_it_unlikely(lag):
    """It is as near to itself a period before as to what the trainer finds there."""
    batch = table(prompts=60, length=110)
    rollout, trainer = (
        side.reshape(batch.sequences, -1).copy() for side in (batch.rollout_logprobs_T, batch.trainer_logprobs_T)
    )
    random, tail = np.random.default_rng(4), slice(-max(abs(lag), 8), None)
    before = slice(-2 * max(abs(lag), 8), -max(abs(lag), 8))
    for side, where in ((rollout, before), (trainer, before), (rollout, tail)):
        side[:40, where] = -0.02 * random.random((40, 1))
    trainer[:40, tail] = -4.0 * random.uniform(0.8, 1.2, trainer[:40, tail].shape)
    assert not alignment_report(
        with_trainer(replace(batch, rollout_logprobs_T=rollout.ravel()), trainer.ravel())
    ).refused
