"""Shifts by more tokens than a path through near lags knows."""

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
